#!/bin/bash
# Tests object stores through the library's trait: against servers of S3, over TLS, and through a proxy that does wrong.
#
#   scripts/checks/test-stores.sh [--tools DIR] [--install] [SERVER…]
#
# SERVER: moto, rclone, versitygw, versitygw+tls, azurite; all that are there if none is named.
# scripts/campaigns/store_servers.py says what they are, and what --tools and --install do: DIR keeps the servers'
# programs, --install gets those that are missing.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

# one_server KIND: what runs with a server. The script calls itself with it.
one_server() {
    local endpoint=${1^^}_ENDPOINT proxy='' proxy_pid='' code=0
    endpoint=${endpoint//+/_}
    export FEC_TEST_S3=${!endpoint} FEC_TEST_KIND=$1 FEC_TEST_HTTP=$FILES_ENDPOINT/bucket
    if [ "$1" != versitygw+tls ] && [ "$1" != azurite ]; then
        exec {lines}< <(exec python3 "$root/scripts/campaigns/store_proxy.py" --to "$FEC_TEST_S3" --seed 1)
        proxy_pid=$!
        read -r proxy <&"$lines"
        export FEC_TEST_PROXY=$proxy
    fi
    "$FEC_TEST_BINARY" --test-threads 4 || code=$?
    if [ -n "$proxy_pid" ]; then
        kill "$proxy_pid"
        wait "$proxy_pid" || true
    fi
    if [ "$1" = versitygw+tls ]; then
        env -u SSL_CERT_FILE -u SSL_CERT_DIR FEC_TEST_UNTRUSTED="$FEC_TEST_S3" \
            "$FEC_TEST_BINARY" certificates --nocapture || code=$?
    fi
    exit "$code"
}

options=() servers=() named=yes
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --tools) options+=("$1" "${2?"--tools needs a folder"}") && shift ;;
    --install) options+=("$1") ;;
    --with) one_server "$2" ;;
    moto | rclone | versitygw | versitygw+tls | azurite) servers+=("$1") ;;
    *) usage ;;
    esac
    shift
done
if [ ${#servers[@]} = 0 ]; then
    named='' servers=(moto rclone versitygw versitygw+tls azurite)
fi
cd "$root"
make_scratch
export PYTHONDONTWRITEBYTECODE=1
FEC_TEST_BINARY=$(compiled_test cloud --test cloud)
export FEC_TEST_BINARY
# Settings of the user are not for these servers, nor is a proxy to the outside.
printf '%s\n' '[right]' 'aws_access_key_id = testkey' 'aws_secret_access_key = testsecret' '[wrong]' \
    'aws_access_key_id = testkey' 'aws_secret_access_key = wrong' '[nobody]' 'region = us-east-1' > "$scratch/credentials"
export AWS_SHARED_CREDENTIALS_FILE=$scratch/credentials AWS_CONFIG_FILE=/dev/null NO_PROXY=127.0.0.1
unset AWS_PROFILE AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_SESSION_TOKEN

failed=0
for server in "${servers[@]}"; do
    code=0
    printf '\n== %s\n' "$server"
    scripts/campaigns/store_servers.py "${options[@]}" --clean "$server" files -- "$self" --with "$server" || code=$?
    # 2: the server is not here.
    [ "$code" = 0 ] || { [ "$code" = 2 ] && [ -z "$named" ]; } || failed=1
done
[ "$failed" = 0 ] || fail 'something above failed'
echo "all that were there: passed in $SECONDS s"
