#!/bin/sh
# What the daemons need on macOS, made as root: the user and the group zmqcat, with these users as
# members, and their directories. `make install` brings the rest. Run again it adds members only.
#
#     sh launchd/prepare.sh USER...
set -eu

# A number that neither a user nor a group has.
free_id() {
    id=541
    while { dscl . -list /Users UniqueID && dscl . -list /Groups PrimaryGroupID; } |
        grep -q "[[:space:]]$id\$"; do
        id=$((id + 1))
    done
    echo "$id"
}

exists() {
    dscl . -read "$1" >/dev/null 2>&1
}

if ! exists /Groups/zmqcat; then
    dscl . -create /Groups/zmqcat PrimaryGroupID "$(free_id)"
fi
if ! exists /Users/zmqcat; then
    id=$(dscl . -read /Groups/zmqcat PrimaryGroupID)
    dscl . -create /Users/zmqcat UniqueID "$(free_id)"
    dscl . -create /Users/zmqcat PrimaryGroupID "${id##* }"
    dscl . -create /Users/zmqcat UserShell /usr/bin/false
    dscl . -create /Users/zmqcat NFSHomeDirectory /var/empty
    dscl . -create /Users/zmqcat IsHidden 1
fi
for user in "$@"; do
    dseditgroup -o edit -a "$user" -t user zmqcat
done
install -d -m 0700 -o zmqcat -g zmqcat /var/lib/zmqcat
install -d -m 0755 -o root -g zmqcat /var/lib/zmqcat-bus
