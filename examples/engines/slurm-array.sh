#!/bin/bash
#SBATCH --job-name=fec-encode
#SBATCH --array=0-9%2
#SBATCH --cpus-per-task=1
#SBATCH --mem=256M
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=fec-%A_%a.jsonl
# Encodes the files of a list on two workers: ten tasks, of which each takes every tenth line.
#
#   LIST=list OUT=safe sbatch --export=ALL slurm-array.sh
#
# OUT has to be there. FEC is the command, fec if it is not set; TASKS is how many there are, 10 if it is not set.
set -u
tasks=${TASKS:-10} tries=${TRIES:-3}
: "${LIST:?}" "${OUT:?}" "${SLURM_ARRAY_TASK_ID:?}"

# Slurm sends SIGTERM to fec itself, which removes what is temporary and ends with 130.
code=0
awk -v task="$SLURM_ARRAY_TASK_ID" -v of="$tasks" '(NR - 1) % of == task' "$LIST" |
    "${FEC:-fec}" encode --files-from - -o "$OUT/{/}.fec" --keep --json -q -j "${SLURM_CPUS_PER_TASK:-1}" || code=$?

case $code in
0) ;;
# Input or output, interrupted, killed or out of memory: once more, but not for ever.
4 | 130 | 137 | 143)
    if [ "${SLURM_RESTART_COUNT:-0}" -lt "$tries" ]; then
        echo "fec ended with $code: requeued" >&2
        scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_$SLURM_ARRAY_TASK_ID" && exit 0
    fi
    ;;
# Wrong use or another encoding is there (2), lost (3), untrue (5), refused (6): somebody has to look.
*) echo "fec ended with $code: not to be repeated" >&2 ;;
esac
exit "$code"
