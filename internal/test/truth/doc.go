// Package truth holds the table of what the program finds of that which was
// planted: limits, rates, delays, and its own shortcomings. Its tests make the
// table, and fail where a bound is missed; 'make truth' prints it and writes
// docs/tables/truth.md.
package truth
