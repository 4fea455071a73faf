#!/usr/bin/env bash
# torchrun with its events recorded, and explained if it fails. Arguments and
# exit status are those of torchrun:
#
#   bash launch_torchrun.sh --standalone --nproc-per-node=2 worker.py

# A folder for each job, which all of its nodes may share.
folder=events/${SLURM_JOB_ID:-$(date +%Y%m%d-%H%M%S)}
export ELASTIC_EVENTS_DESTINATION="file:$folder/{hostname}.jsonl"

# In the background, so that a signal to this script reaches torchrun at once.
torchrun "$@" &
torchrun=$!
trap 'kill "$torchrun"' HUP INT TERM
wait "$torchrun"
status=$?
# A signal ends the wait, but not yet torchrun.
while [[ $(jobs -pr) ]]; do
  wait "$torchrun"
  status=$?
done

if ((status != 0)); then
  elastic-events explain "$folder"/*.jsonl >&2
fi
exit "$status"
