package cli

// FailureSchema gives the tests the name of the format of an error.
const FailureSchema = failureSchema

// NewRootCommand gives the tests the tree of commands.
var NewRootCommand = newRootCommand
