#!/bin/sh
# `make quickstart`: a hub in a temporary directory, and jobs put and taken with the real programs.
# Every command is shown before it runs. B: the directory of the build.
set -eu

build=$(cd "${B:-build}" && pwd)
dir=$(mktemp -d /tmp/zmqcat-quickstart.XXXXXX)
hub=
work=
finish() {
    status=$?
    trap - EXIT INT TERM
    for pid in $work $hub; do
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
start_hub() {
    show 'zmqcat-hub --local --listen ./bus --mailbox ./mailbox &'
    zmqcat-hub --local --listen ./bus --mailbox ./mailbox >hub.log 2>&1 &
    hub=$!
    tries=0
    until zmqcat ping --listen ./bus >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ] || ! kill -0 $hub 2>/dev/null; then
            echo "quickstart: the hub did not start:" >&2
            cat hub.log >&2
            exit 1
        fi
        sleep 0.1
    done
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
echo "It works. All of it is gone again: $dir was removed."
