#!/bin/bash
# Runs the examples of examples/engines: 40 files on two workers, killed midway and run again, with only the rest left
# to do.
#
#   scripts/checks/engines.sh --fec BIN [--only xargs|slurm|kubernetes|dask|ray]
#
# Each example runs without trouble; then until some outputs are there, when every process is killed (SIGKILL); then
# again, which must keep these outputs and make the others; then once more, which must keep all and write nothing. Then
# all outputs are decoded and compared. Slurm's script and the command of Kubernetes run here, two at a time, with the
# variables that Slurm and Kubernetes set. Dask and Ray are installed from PyPI into an environment of their own, and
# left out where they cannot be had.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

files=40
fec='' only=''
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --fec) fec=$(find_fec "${2?"--fec needs a path"}") && shift ;;
    --only) only=${2?"--only needs a name"} && shift ;;
    *) usage ;;
    esac
    shift
done
case $only in '' | xargs | slurm | kubernetes | dask | ray) ;; *) usage ;; esac
[ -n "$fec" ] || usage
examples=$root/examples/engines
make_scratch
cd "$scratch"
export FEC=$fec PYTHONDONTWRITEBYTECODE=1

# Every process of a run has this in its environment: so they are found, and no others.
mark="FEC_ENGINES_RUN=$$-$RANDOM$RANDOM"
# Processes come and go while it looks.
ours() { { grep -lzxF "$mark" /proc/[0-9]*/environ || true; } 2> /dev/null | cut -d / -f 3; }
kill_ours() {
    local processes
    while processes=$(ours) && [ -n "$processes" ]; do
        # shellcheck disable=SC2086 # A list.
        kill -KILL $processes 2> /dev/null || true
        sleep 0.02
    done
}
trap 'kill_ours; rm -rf "$scratch"' EXIT

# The way that an engine is run: a function with IN and OUT, of which standard output is a line of JSON for each file.
run_xargs() { env "$mark" "$examples/xargs.sh" "$1" "$2"; }
run_dask() { env "$mark" "$python" "$examples/dask_bag.py" "$1" "$2"; }
# Ray writes to the home folder.
run_ray() { env "$mark" HOME="$scratch" RAY_TMPDIR="$ray_folder" RAY_USAGE_STATS_ENABLED=0 "$python" "$examples/ray_tasks.py" "$1" "$2"; }
run_slurm() {
    mkdir -p "$2"
    find "$1" -type f ! -name $'*\n*' > list
    seq 0 9 | env "$mark" LIST=list OUT="$2" xargs -P 2 -I '{}' env SLURM_ARRAY_TASK_ID='{}' "$examples/slurm-array.sh"
}
run_kubernetes() {
    mkdir -p "$2" bin
    ln -sf "$fec" bin/fec
    find "$PWD/$1" -type f ! -name $'*\n*' > list
    "$python" - "$examples/kubernetes-indexed-job.yaml" > command.sh <<'END'
import sys, yaml
job = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
spec, pod = job["spec"], job["spec"]["template"]["spec"]
[container] = pod["containers"]
env = {entry["name"]: entry["value"] for entry in container["env"]}
assert int(env["INDEXES"]) == spec["completions"] and spec["completionMode"] == "Indexed"
assert pod["restartPolicy"] == "Never" and spec["backoffLimitPerIndex"] > 0
fails = [rule for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "FailIndex"]
assert fails[0]["onExitCodes"] == {"containerName": container["name"], "operator": "In", "values": [2, 3, 5, 6]}
assert container["command"][:2] == ["sh", "-euc"]
# Each pod has a /tmp of its own.
print(container["command"][2].replace("/tmp/", "./"))
END
    # shellcheck disable=SC2016 # The inner shell expands it.
    seq 0 9 | env "$mark" PATH="$scratch/bin:$PATH" INDEXES=10 LIST="$scratch/list" OUT="$scratch/$2" COMMAND="$scratch/command.sh" \
        xargs -P 2 -I '{}' env JOB_COMPLETION_INDEX='{}' \
        sh -euc 'mkdir -p pod-"$JOB_COMPLETION_INDEX"; cd pod-"$JOB_COMPLETION_INDEX"; sh -eu "$COMMAND"'
}

# Names may have several lines.
there() { find "$1" -name '*.fec' "${@:2}" -printf . 2> /dev/null | wc -c; }
now() { date +%s.%N; }
seconds() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f s", b - a }'; }

# counts LINES KEPT MADE: what the lines of JSON say, of so many files.
counts() {
    python3 - "$@" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
failed = [line for line in lines if line.get("exit_code") or "error" in line]
kept = [line["input"] for line in lines if line.get("kept")]
made = [line["input"] for line in lines if line.get("kept") is False]
assert not failed, failed
assert len(set(kept + made)) == len(lines), "a file twice"
assert (len(kept), len(made)) == (int(sys.argv[2]), int(sys.argv[3])), (len(kept), len(made), sys.argv[2:])
END
}

# check ENGINE
check() {
    local engine=$1 began restored kept all first again
    rm -rf out full marker
    all=$files
    case $engine in slurm | kubernetes) all=$(find in -type f ! -name $'*\n*' -printf . | wc -c) ;; esac

    began=$(now)
    "run_$engine" in full > full.jsonl
    first=$(seconds "$began" "$(now)")
    counts full.jsonl 0 "$all" || fail "$engine: the first run did not make all of them"

    "run_$engine" in out > killed.jsonl 2> killed.err &
    while [ "$(there out)" -lt 5 ]; do
        kill -0 $! 2> /dev/null || { cat killed.err >&2; fail "$engine: it ended before it could be killed"; }
        sleep 0.005
    done
    kill_ours
    wait $! || true
    kept=$(there out)
    [ "$kept" -lt "$all" ] || fail "$engine: all was done before it was killed"
    touch marker
    sleep 0.05
    "run_$engine" in out > again.jsonl
    counts again.jsonl "$kept" $((all - kept)) || fail "$engine: the second run did not keep what was there and make the rest"
    [ "$(there out ! -newer marker)" = "$kept" ] || fail "$engine: what was kept was written"
    [ -z "$(find out -name '.fec-*')" ] || fail "$engine: temporary files are left"

    touch marker
    began=$(now)
    "run_$engine" in out > kept.jsonl
    again=$(seconds "$began" "$(now)")
    counts kept.jsonl "$all" 0 || fail "$engine: the last run did not keep all"
    [ -z "$(find out -newer marker)" ] || fail "$engine: the last run wrote something"

    restored=0
    while IFS= read -r -d '' file; do
        "$fec" decode "$file" -o - -q 2> /dev/null | cmp - "in/$(basename -- "$file" .fec)" || fail "$engine: $file is wrong"
        restored=$((restored + 1))
    done < <(find out -name '*.fec' -print0)
    [ "$restored" = "$all" ] || fail "$engine: $restored of $all files came back"
    echo "$engine: $all files in $first; killed when $kept were there, the others made; all kept in $again; all decoded"
}

# Tests what Slurm's script tells Slurm for each exit code, with stand-ins for fec and for scontrol.
slurm_codes() {
    local code expected told
    mkdir -p stubs
    # shellcheck disable=SC2016 # The stubs expand it.
    printf '#!/bin/sh\ncat > /dev/null\nexit "$CODE"\n' > stubs/fec
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "$@" > requeued\n' > stubs/scontrol
    chmod +x stubs/*
    for expected in '0 0' '2 2' '3 3' '4 0 requeue 7_3' '5 5' '6 6' '130 0 requeue 7_3' '101 101'; do
        code=${expected%% *} told=0
        rm -f requeued
        CODE=$code FEC=$scratch/stubs/fec PATH=$scratch/stubs:$PATH LIST=/dev/null OUT=. SLURM_ARRAY_JOB_ID=7 \
            SLURM_ARRAY_TASK_ID=3 "$examples/slurm-array.sh" 2> /dev/null || told=$?
        [ "$code $told$([ ! -e requeued ] || echo " $(cat requeued)")" = "$expected" ] || fail "slurm: $code is not $expected"
    done
    rm -f requeued
    told=0
    CODE=4 FEC=$scratch/stubs/fec PATH=$scratch/stubs:$PATH LIST=/dev/null OUT=. SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3 \
        SLURM_RESTART_COUNT=3 "$examples/slurm-array.sh" 2> /dev/null || told=$?
    if [ "$told" != 4 ] || [ -e requeued ]; then fail 'slurm: it is requeued for ever'; fi
}

# python_with PACKAGE MODULE: $python, with that; false if it cannot be had.
python_with() {
    python=$scratch/python/bin/python
    [ -x "$python" ] || python3 -m venv "$scratch/python" > /dev/null 2>&1 || return 1
    "$python" -c "import $2" 2> /dev/null || "$python" -m pip install -q "$1" > pip.log 2>&1
}

mkdir in
for ((i = 0; i < files; i++)); do
    # The inputs include an empty file and a name of two lines.
    case $i in 0) name='an empty one' ;; 1) name=$'two\nlines' ;; *) name="object $i.bin" ;; esac
    head -c $((i * 80000)) /dev/urandom > "in/$name"
done
for engine in ${only:-xargs slurm kubernetes dask ray}; do
    case $engine in
    slurm) slurm_codes ;;
    kubernetes) python_with pyyaml yaml || { echo "$engine: skipped, PyYAML cannot be had"; continue; } ;;
    dask) python_with dask dask.bag || { echo "$engine: skipped, dask cannot be had from PyPI"; continue; } ;;
    ray)
        python_with ray ray || { echo "$engine: skipped, ray cannot be had from PyPI"; continue; }
        # Names of its sockets have to be short.
        ray_folder=$(mktemp -d /tmp/fecr.XXXX)
        trap 'kill_ours; rm -rf "$scratch" "$ray_folder"' EXIT
        ;;
    esac
    check "$engine"
done
