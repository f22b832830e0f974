#!/bin/sh
# `make quickstart`: a hub in a temporary directory, then a hub and a spoke with a relay between
# them, and jobs put and taken with the real programs.
# Every command is shown before it runs. B: the directory of the build.
set -eu

build=$(cd "${B:-build}" && pwd)
dir=$(mktemp -d /tmp/zmqcat-quickstart.XXXXXX)
hub=
relay=
spoke=
finish() {
    status=$?
    trap - EXIT INT TERM
    for pid in $spoke $hub $relay; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || :
    done
    rm -rf "$dir"
    exit $status
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

PATH=$build:$PATH
cd "$dir"
show() {
    echo "\$ $*"
}
# Runs a command line as typed.
run() {
    show "$1"
    eval "$1"
}
# start LOG COMMAND: a daemon in the background; its process number is then in $started.
start() {
    show "$2 >$1 2>&1 &"
    eval "$2 >$1 2>&1 </dev/null &"
    started=$!
}
# await WHAT PID LOG COMMAND...: until COMMAND succeeds, while the process lives.
await() {
    what=$1 pid=$2 log=$3 tries=0
    shift 3
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ] || ! kill -0 $pid 2>/dev/null; then
            echo "quickstart: $what did not start:" >&2
            cat $log >&2
            exit 1
        fi
        sleep 0.1
    done
}
start_hub() {
    start hub.log 'zmqcat-hub --local --listen ./bus --mailbox ./mailbox'
    hub=$started
    await 'the hub' $hub hub.log zmqcat ping --listen ./bus
}

echo "# A hub with durable mailboxes, on a socket in $dir"
start_hub
run 'export ZMQCAT_LISTEN=./bus'
run 'zmqcat ping'
echo
echo "# Put two jobs: ok means that they are on disk. Take one."
run "zmqcat put jobs 'resize photo-17.jpg'"
run "zmqcat put jobs 'resize photo-18.jpg'"
run 'zmqcat take jobs'
echo
echo "# Kill the hub as hard as can be and start it again: the second job is still there."
show "kill -9 $hub"
kill -9 $hub
wait $hub 2>/dev/null || :
hub=
start_hub
run 'zmqcat stat jobs'
run 'zmqcat take jobs'
echo
echo "# reserve holds a job until it is told ack. Without it the job would go back to its place."
run "zmqcat put thumbs 'photo-19.jpg'"
run 'echo ack | zmqcat reserve thumbs'
echo
echo "# The last value of a topic waits for whoever subscribes later."
run 'zmqcat pub sensors.kitchen 21.5 --name thermometer'
run 'zmqcat sub sensors. --count 1'
echo
echo "# Stop the hub: it closes its log and removes its socket."
show "kill $hub"
kill $hub
wait $hub
hub=
run 'ls'
echo
echo "# Now both ends: a hub with a tunnel, and a spoke that joins it with its token, as on another"
echo "# host. Between them is a relay; here it is that of the tests, so that no network is needed."
run 'mkdir ./relay'
start relay.log 'relay --dir ./relay'
relay=$started
await 'the relay' $relay relay.log test -e ./relay/map.json
tunnel='--derp-map ./relay/map.json --key-file ./hub.key --token-out ./token'
start hub.log "zmqcat-hub --listen ./bus $tunnel"
hub=$started
await 'the hub' $hub hub.log test -e ./token
start spoke.log 'zmqcat-spoke --listen ./spoke --token-file ./token --key-file ./spoke.key'
spoke=$started
await 'the spoke' $spoke spoke.log grep -q joined spoke.log
echo "# A job put at the spoke, taken at the hub, and the other way round."
run 'zmqcat put jobs "made at the spoke" --listen ./spoke'
run 'zmqcat take jobs --listen ./bus'
run 'zmqcat put jobs "made at the hub" --listen ./bus'
run 'zmqcat take jobs --listen ./spoke'
run 'zmqcat ping -v --listen ./spoke'
show "kill $spoke $hub"
kill $spoke $hub
wait $spoke
wait $hub
spoke= hub=
echo
echo "It works. All of it is gone again: $dir was removed."
