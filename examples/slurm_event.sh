#!/bin/bash
# Slurm's prolog and epilog: an event when a job begins and ends on a node.
# In slurm.conf:
#
#   Prolog=/etc/slurm/slurm_event.sh
#   Epilog=/etc/slurm/slurm_event.sh
#
# Whatever happens, it ends within some seconds with status 0: Slurm takes a
# node whose prolog or epilog fails out of service.

# Slurm gives its scripts no PATH. The last folder is where the package is:
# python3 -m venv /opt/elastic-events
PATH=$PATH:/opt/elastic-events/bin
export PATH
default='file:/var/log/elastic-events/{hostname}.jsonl'

about=()
for name in SLURM_CLUSTER_NAME SLURM_JOB_PARTITION SLURM_JOB_USER \
  SLURM_JOB_NODELIST SLURM_JOB_EXIT_CODE2; do
  # Not every context has them all.
  if [[ -n ${!name} ]]; then
    about+=(--meta "${name,,}=${!name}")
  fi
done

# Nothing on standard output: a task's prolog gives Slurm orders there.
timeout --kill-after=1 5 elastic-events record \
  "slurm.${SLURM_SCRIPT_CONTEXT:-script}" --source AGENT \
  --run-id "$SLURM_JOB_ID" "${about[@]}" \
  --to "${ELASTIC_EVENTS_DESTINATION:-$default}" < /dev/null >&2
exit 0
