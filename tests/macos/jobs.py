"""The plists of launchd/, and the keys of launchd.plist(5) that we use with their types."""
import glob, os, plistlib, re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOCKET = {"SockPathName": str, "SockPathMode": int, "SockNodeName": str, "SockServiceName": str,
          "SockFamily": str, "SockType": str}
LIMITS = {"Core": int, "NumberOfFiles": int}
JOB = {"Label": str, "ProgramArguments": [str], "EnvironmentVariables": {"STATE_DIRECTORY": str},
       "UserName": str, "GroupName": str, "WorkingDirectory": str, "Umask": int, "RunAtLoad": bool,
       "Disabled": bool, "KeepAlive": {"SuccessfulExit": bool}, "ThrottleInterval": int,
       "ExitTimeOut": int, "SoftResourceLimits": LIMITS, "HardResourceLimits": LIMITS,
       "StandardOutPath": str, "StandardErrorPath": str,
       "Sockets": {"Listeners": SOCKET, "Control": SOCKET}}


def read(path):
    with open(path, "rb") as f:
        return plistlib.load(f)


def shipped(folder):
    """{role: job} of launchd or launchd/agents."""
    paths = glob.glob(os.path.join(ROOT, folder, "*.plist"))
    return {re.fullmatch(r"org\.zmqcat\.(\w+)\.plist", os.path.basename(p)).group(1): read(p)
            for p in paths}


def misfits(value, wanted=JOB, where="job"):
    """What in it has no place in the table, or another type."""
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return [where]
        return [m for key, v in value.items() for m in (
            misfits(v, wanted[key], where + "." + key) if key in wanted else [where + "." + key])]
    if isinstance(wanted, list):
        return [m for v in value for m in misfits(v, wanted[0], where + "[]")] \
            if isinstance(value, list) else [where]
    return [] if type(value) is wanted else [where]


def bad_manners(job):
    """H15: what makes launchd start for ever what was stopped, run what fails without a rest, give
    everybody the sockets, or lose what is logged."""
    sockets = job.get("Sockets", {})
    listeners, control = sockets.get("Listeners", {}), sockets.get("Control", {})
    checks = {
        "KeepAlive": job.get("KeepAlive") == {"SuccessfulExit": False},
        "ThrottleInterval": job.get("ThrottleInterval", 0) >= 10,
        "RunAtLoad": job.get("RunAtLoad") is True,
        "Umask": job.get("Umask") == 0o77,
        "Core": job.get("HardResourceLimits", {}).get("Core") == 0,
        "Sockets": set(sockets) == {"Listeners", "Control"},
        "Listeners": ("SockPathName" in listeners) != ("SockServiceName" in listeners)
        and listeners.get("SockPathMode", 0o660) & 0o117 == 0,
        "Control": control.get("SockPathMode") == 0o600,
        "logs": all(job.get(k, "").startswith(("/", "@HOME@/"))
                    for k in ("StandardOutPath", "StandardErrorPath"))}
    return [name for name, good in checks.items() if not good]
