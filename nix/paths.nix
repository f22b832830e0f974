# Paths in services.zmqcat: what the service sees, and what it may have for itself.
let
  inherit (builtins) dirOf elem match;
  parts = path: builtins.filter builtins.isString (builtins.split "/" path);
in
rec {
  # Where the service keeps what is its own.
  state = "/var/lib/zmqcat";

  under =
    dir: path:
    let
      start = builtins.substring 0 (builtins.stringLength dir + 1) path;
    in
    path == dir || start == "${dir}/";
  underAny = dirs: path: builtins.any (dir: under dir path) dirs;
  inStore = under builtins.storeDir;
  nested = a: b: under a b || under b a;

  # Written in the one way that all programs understand alike. systemd-tmpfiles would take ', a
  # backslash and the end of a line for something else.
  plain =
    path:
    match "(/[^/'\\\n]+)+" path != null
    && !builtins.any (part: part == "." || part == "..") (parts path);

  # Hidden from the service, or not what others see there.
  hidden = [
    "/Users"
    "/dev"
    "/home"
    "/proc"
    "/root"
    "/sys"
    "/tmp"
    "/var/tmp"
  ];
  # Of the system, or of others on it.
  system = hidden ++ [
    "/Library"
    "/System"
    "/bin"
    "/boot"
    "/etc"
    "/lib"
    "/lib64"
    "/private"
    "/run"
    "/sbin"
    "/usr"
    "/var/lib/nixos"
    "/var/lib/private"
    "/var/lib/systemd"
    "/var/lib/zmqcat-bus"
    "/var/run"
    builtins.storeDir
  ];
  # What lies directly in these is for all, or a whole disk.
  crowded = [
    "/"
    "/Volumes"
    "/media"
    "/mnt"
    "/var"
  ];
  ownable = dir: !elem (dirOf dir) crowded;
}
