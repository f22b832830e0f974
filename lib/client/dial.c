/*
 * Finds and reaches the bus. A socket that was not named by its user but found at a well-known
 * place could have been put there by anybody (/tmp is open to all), so its listener must be root,
 * the caller, or the service user. Deliberately absent: a deadline for the resolver, which
 * getaddrinfo does not offer.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred */
#endif
#include "client/dial.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "client/connect.h"

#define SYSTEM_BUS "/run/zmqcat/zmqcat.sock"
#define SYSTEM_CONTROL "/run/zmqcat/control.sock"
#define SERVICE_USER "zmqcat"
#define CONTROL_SUFFIX ".ctl"
#define START_HINT "start a hub with `zmqcat serve --local`, or name its socket with --listen"
#define GROUP_HINT                                                                                 \
    "only the socket's group may use it: join that group and log in again, or use sudo"
#define OWNER_HINT "only its owner and root may use it: use sudo"
#define CONTROL_HINT "start a hub, or name its control socket with --control"

static int refuse(struct zmqcat *bus, int rc, const char *what, const char *why)
{
    snprintf(bus->why, sizeof bus->why, "%s: %s", what, why);
    return rc;
}

/* What helps when a socket may not be used. */
static const char *denied_hint(const char *path)
{
    struct stat st;
    bool grouped = stat(path, &st) == 0 && (st.st_mode & S_IWGRP) != 0;
    return grouped ? GROUP_HINT : OWNER_HINT;
}

/* hint: what helps when nobody listens there. */
static int dial_parsed(struct zmqcat *bus, const struct zc_address *a, const char *hint)
{
    zc_address_text(a, bus->address);
    const char *why = NULL;
    errno = 0;
    int fd =
        a->kind == ZC_ADDRESS_UNIX ? zc_connect_unix(bus, a->path) : zc_connect_tcp(bus, a, &why);
    if (fd < 0 && errno == ECANCELED)
        return refuse(bus, ZMQCAT_STOPPED, bus->address, "stopped before it was reached");
    if (fd < 0) {
        char text[256];
        int err = errno;
        snprintf(text, sizeof text, "%s", why != NULL ? why : strerror(err));
        if (a->kind == ZC_ADDRESS_UNIX && err == EACCES)
            snprintf(text, sizeof text, "%s: %s", strerror(err), denied_hint(a->path));
        if (err == ECONNREFUSED || (a->kind == ZC_ADDRESS_UNIX && err == ENOENT))
            snprintf(text, sizeof text, "%s: %s", strerror(err), hint);
        return refuse(bus, ZMQCAT_FAILED, bus->address, text);
    }
    bus->fd = fd;
    return ZMQCAT_OK;
}

static int parse(struct zmqcat *bus, const char *text, struct zc_address *ret_address)
{
    char why[ZC_ADDRESS_WHY_MAX];
    if (zc_address_parse(text, ret_address, why) == 0)
        return ZMQCAT_OK;
    char shown[256];
    zc_text_escape(shown, sizeof shown, zc_slice_str(text));
    return refuse(bus, ZMQCAT_USAGE, shown, why);
}

static int dial_text(struct zmqcat *bus, const char *text, const char *hint)
{
    struct zc_address a;
    int rc = parse(bus, text, &a);
    return rc != ZMQCAT_OK ? rc : dial_parsed(bus, &a, hint);
}

/* Who listens. Returns 0 or an errno. */
static int peer_uid(int fd, uid_t *ret_uid)
{
#ifdef SO_PEERCRED
    struct ucred cred;
    socklen_t len = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return errno;
    *ret_uid = cred.uid;
    return 0;
#else
    gid_t gid;
    return getpeereid(fd, ret_uid, &gid) < 0 ? errno : 0;
#endif
}

static bool trusted(uid_t uid)
{
    if (uid == 0 || uid == geteuid())
        return true;
    const struct passwd *service = getpwnam(SERVICE_USER);
    return service != NULL && service->pw_uid == uid;
}

/* One well-known path. Returns a trusted connection or -1; what was found there and could not be
 * used is added to `found`. */
static int try_default(const struct zmqcat *bus, const char *path, char *found, size_t cap)
{
    struct stat st;
    if (lstat(path, &st) < 0 && errno == ENOENT)
        return -1;
    size_t used = strlen(found);
    const char *gap = used > 0 ? "; " : "";
    int fd = zc_connect_unix(bus, path);
    if (fd < 0) {
        int why = errno;
        snprintf(found + used, cap - used, "%s%s: %s%s%s", gap, path, strerror(why),
                 why == EACCES ? ": " : "", why == EACCES ? denied_hint(path) : "");
        return -1;
    }
    uid_t uid = (uid_t)-1;
    int err = peer_uid(fd, &uid);
    if (err == 0 && trusted(uid))
        return fd;
    close(fd);
    if (err != 0)
        snprintf(found + used, cap - used, "%s%s: who listens is unknown: %s", gap, path,
                 strerror(err));
    else
        snprintf(found + used, cap - used,
                 "%s%s: not used, because it belongs to uid %lu, who is neither root, you, nor "
                 "the user " SERVICE_USER,
                 gap, path, (unsigned long)uid);
    return -1;
}

static int dial_default(struct zmqcat *bus, const char *const paths[2], const char *hint)
{
    char found[ZC_BUS_WARNING_MAX - 16] = "";
    for (int i = 0; i < 2; i++) {
        int fd = try_default(bus, paths[i], found, sizeof found);
        if (fd < 0)
            continue;
        bus->fd = fd;
        snprintf(bus->address, sizeof bus->address, "unix://%s", paths[i]);
        if (found[0] != '\0')
            snprintf(bus->warning, sizeof bus->warning, "skipped %s", found);
        return ZMQCAT_OK;
    }
    if (found[0] != '\0') {
        snprintf(bus->why, sizeof bus->why, "%s; or %s", found, hint);
        return ZMQCAT_FAILED;
    }
    snprintf(bus->why, sizeof bus->why, "no hub found (tried %s and %s): %s", paths[0], paths[1],
             hint);
    return ZMQCAT_FAILED;
}

/* The address that the user gave, or NULL for the default search. */
static const char *named(const char *address)
{
    if (address != NULL && address[0] != '\0')
        return address;
    const char *env = getenv("ZMQCAT_LISTEN");
    return env != NULL && env[0] != '\0' ? env : NULL;
}

int zc_dial_bus(struct zmqcat *bus, const char *address)
{
    const char *text = named(address);
    if (text != NULL)
        return dial_text(bus, text, START_HINT);
    char user[64];
    snprintf(user, sizeof user, "/tmp/zmqcat-%lu.sock", (unsigned long)getuid());
    return dial_default(bus, (const char *const[2]){SYSTEM_BUS, user}, START_HINT);
}

/* The control socket beside a bus that the user named. */
static int dial_beside(struct zmqcat *bus, const char *text)
{
    struct zc_address a;
    int rc = parse(bus, text, &a);
    if (rc != ZMQCAT_OK)
        return rc;
    if (a.kind != ZC_ADDRESS_UNIX)
        return refuse(bus, ZMQCAT_USAGE, text,
                      "the bus is on TCP: name its control socket with "
                      "--control");
    if (strcmp(a.path, SYSTEM_BUS) == 0) {
        snprintf(a.path, sizeof a.path, "%s", SYSTEM_CONTROL);
        return dial_parsed(bus, &a, START_HINT);
    }
    size_t len = strlen(a.path);
    if (len + strlen(CONTROL_SUFFIX) > ZC_ADDRESS_PATH_MAX)
        return refuse(bus, ZMQCAT_FAILED, text,
                      "the path with " CONTROL_SUFFIX " is too long for "
                      "a socket: name the control socket with --control");
    memcpy(a.path + len, CONTROL_SUFFIX, sizeof CONTROL_SUFFIX);
    return dial_parsed(bus, &a, START_HINT);
}

int zc_dial_control(struct zmqcat *bus, const char *control, const char *listen)
{
    if (control != NULL && control[0] != '\0')
        return dial_text(bus, control, CONTROL_HINT);
    const char *text = named(listen);
    if (text != NULL)
        return dial_beside(bus, text);
    char user[64];
    snprintf(user, sizeof user, "/tmp/zmqcat-%lu.sock" CONTROL_SUFFIX, (unsigned long)getuid());
    return dial_default(bus, (const char *const[2]){SYSTEM_CONTROL, user}, CONTROL_HINT);
}
