#!/bin/bash
set -o nounset
set -o pipefail

night=$(mktemp)
code=0
# On the cluster of the test: node-density --kubeconfig "$KUBECONFIG" --yes instead of simulated.
plimsoll limit simulated --set limit=37 --out "$ARTIFACT_DIR" ${PLIMSOLL_BASELINE:+--baseline "$PLIMSOLL_BASELINE"} --summary > "$night" || code=$?
cat "$night"
tail -n 1 "$night" > "$ARTIFACT_DIR/summary.json"
plimsoll analyze "$ARTIFACT_DIR" -o junit > "$ARTIFACT_DIR/junit_plimsoll.xml"

case $code in
0) ;;
1) echo "regression, or the run failed" ;;
3) echo "inconclusive: the measurements do not decide; run it again" ;;
4) echo "invalid: the node of this pod was too busy; run it again" ;;
*) echo "no result" ;;
esac
exit $code
