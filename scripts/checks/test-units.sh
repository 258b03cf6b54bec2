#!/bin/bash
# Runs the units of examples/systemd and the timer of the guide's page of repositories by a systemd of their own.
#
#   scripts/checks/test-units.sh [--install] [FEC]
#
# A systemd is started as the first process of namespaces that see other folders as /run, /srv, /tmp and /var, and no
# unit of this machine. That takes root; where no systemd comes up, nothing is tried, and a line says so.
# --install gets systemd and restic on Debian. Without FEC the release build is made and used.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"
case ${1-} in
-h | --help) show_help ;;
--install)
    need systemd-analyze systemd && need restic restic
    shift
    ;;
esac
fec=$(find_fec "${1-}")
# shellcheck disable=SC2119
make_scratch
mkdir "$scratch/units" "$scratch/bin"
cp "$fec" "$scratch/bin/fec"
cp "$root/scripts/release/fec-night.sh" "$scratch/bin/fec-night"
cp "$root"/examples/systemd/fec-verify@.* "$scratch/units"
# The units of the guide: those of a user, run here by the manager of the system.
page=$root/docs/guide/repositories.md
awk -v folder="$scratch/units/" '
    /^# ~\/.config\/systemd\/user\/backup/ { sub(/:.*/, ""); n = split($2, part, "/"); file = folder part[n]; next }
    /^```/ { file = "" }
    file { print > file }
' "$page"
[ -s "$scratch/units/backup.timer" ] || fail "$page has no timer any more"
sed -i 's,%h,/srv/home,' "$scratch/units/backup.service"
for unit in basic.target sysinit.target shutdown.target timers.target systemd-journald.{service,socket}; do
    cp "/lib/systemd/system/$unit" "$scratch/units/"
done

# In the namespaces: folders, then systemd in this shell's place.
cat > "$scratch/first" << 'EOF'
set -e
for folder in /run /srv /var; do mount -t tmpfs none "$folder"; done
mkdir -p /srv/bin /srv/home /var/lib /var/log /var/tmp
cp "$1"/bin/* /srv/bin/
cp -r "$1/units" /srv/units
mount --bind /srv/bin /usr/local/bin
mount -t tmpfs none /tmp
exec env -i container=namespaces PATH="$PATH" SYSTEMD_UNIT_PATH=/srv/units SYSTEMD_GENERATOR_PATH=/srv/none \
    /lib/systemd/systemd --system --unit=basic.target
EOF
unshare --mount --pid --fork --cgroup --ipc --uts --mount-proc --kill-child sh "$scratch/first" "$scratch" > "$scratch/systemd" 2>&1 &
outer=$!
trap 'kill -9 $outer; wait $outer 2> /dev/null || true; rm -rf "$scratch"' EXIT
inside() { nsenter --mount --pid --cgroup --ipc --target "$(pgrep -P $outer)" env HOME=/srv/home "$@"; }
for _ in $(seq 100); do
    state=$(inside systemctl is-system-running 2> /dev/null) || true
    [ "$state" != running ] || break
    sleep 0.1
done
[ "$state" = running ] || {
    cat "$scratch/systemd"
    echo "test-units: no systemd comes up here, so nothing is tried"
    exit 0
}

inside systemctl start systemd-journald.service

# started UNIT: whether the service ended well, with what it printed in $said.
said=$scratch/said
started() {
    local well=0
    inside systemctl start "$1" > "$said" 2>&1 || well=1
    inside journalctl --sync
    inside journalctl --no-pager --output cat --unit "$1" >> "$said"
    inside journalctl --rotate --vacuum-time=1s > /dev/null 2>&1
    return $well
}
# by_timer UNIT: until the timer of that name, each second from now on, has started the service.
by_timer() {
    inside sh -c "mkdir -p '/srv/units/$1.timer.d' && printf '[Timer]\nOnCalendar=\nOnCalendar=*:*:*\nRandomizedDelaySec=0\nAccuracySec=1ms\n' > '/srv/units/$1.timer.d/often.conf'"
    inside systemctl enable --now --quiet "$1.timer"
    for _ in $(seq 100); do
        [ "$(inside systemctl show --property ExecMainExitTimestampMonotonic --value "$1.service")" = 0 ] || break
        sleep 0.1
    done
    # As long as the timer is there, systemd keeps how the service ended.
    ended=$(inside systemctl show --property ExecMainCode,ExecMainStatus --value "$1.service" | tr '\n' ' ')
    inside systemctl disable --now --quiet "$1.timer"
    while [ "$(inside systemctl is-active "$1.service")" = activating ]; do sleep 0.1; done
    [ "$ended" = '1 0 ' ] ||
        { inside journalctl --no-pager --unit "$1.service"; fail "the timer $1.timer started nothing that ended well"; }
}
# damaged FILE: eight bytes in the middle of it, without another time.
damaged() {
    # shellcheck disable=SC2016
    inside sh -c 'touch -r "$1" /tmp/time && printf damaged! |
        dd of="$1" bs=1 seek=$(($(stat -c %s "$1") / 2)) conv=notrunc status=none && touch -r /tmp/time "$1"' sh "$1"
}

echo 'a timer that verifies'
name=fec-verify@$(systemd-escape --path /srv/photos.fecp)
# shellcheck disable=SC2016
inside sh -c 'mkdir /srv/photos && for nth in 1 2 3; do head -c 300000 /dev/urandom > /srv/photos/$nth.jpg; done'
inside fec protect -q --policy photos /srv/photos > /dev/null
by_timer "$name"
inside test -s "/var/lib/fec/${name#*@}.state" || fail 'the state of the verify is not kept'
inside sh -c 'rm /var/lib/fec/*'
damaged /srv/photos/2.jpg
! started "$name.service" || fail 'the service passes over damage'
grep -q 'fec repair' "$said" || { cat "$said"; fail 'the journal does not say what to do'; }
inside systemctl --failed --no-pager | grep -qF "$name.service" || fail 'the service is not among the failed ones'
inside fec repair -q /srv/photos.fecp
started "$name.service" || { cat "$said"; fail 'the service fails after a repair'; }
inside sh -c 'rm /var/lib/fec/* && sleep 0.1 && echo words > /srv/photos/notes.txt'
started "$name.service" || { cat "$said"; fail 'the service fails on a new file'; }

echo 'a timer that backs up'
if ! has restic; then
    echo "test-units: no restic, so the timer of backups is left out"
    exit 0
fi
inside sh -c 'mkdir /srv/home/documents && echo word > /srv/home/.restic-password && head -c 3000000 /dev/urandom > /srv/home/documents/1'
export RESTIC_PASSWORD_FILE=/srv/home/.restic-password
inside restic -q -r /srv/restic init
by_timer backup
inside fec verify -q /srv/restic.fecp
pack=$(inside find /srv/restic/data -type f -size +500k | head -n 1)
[ -n "$pack" ] || fail 'the timer backed nothing up'
inside truncate -s -100000 "$pack"
inside sh -c 'head -c 2000000 /dev/urandom > /srv/home/documents/2'
started backup.service || { cat "$said"; fail 'the backup fails beside a cut pack'; }
grep -qF "${pack##*/}" "$said" || { cat "$said"; fail 'the journal does not say that a pack was cut'; }
inside fec verify -q /srv/restic.fecp
inside restic -q -r /srv/restic check --read-data
echo 'the units do what the guide says'
