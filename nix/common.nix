# What services.zmqcat means on either system: addresses, the command line, what is refused and
# what has a better form.
{
  lib,
  cfg,
  # Unix paths have this many bytes at most.
  pathMax,
}:
let
  inherit (lib) hasInfix hasPrefix hasSuffix optional optionals;
  # `serve` and `join` are the names of the Go program.
  role =
    {
      serve = "hub";
      join = "spoke";
    }
    .${cfg.role} or cfg.role;
  hub = role == "hub";
  state = "/var/lib/zmqcat";

  # A path literal stays a path here: it is named in a message, never copied to the store.
  text = value: if value == null then null else toString value;
  # What is no secret may lie in the store, and is put there when it is a path literal.
  public = value: if builtins.isPath value then "${value}" else text value;
  mailbox = text cfg.mailbox;
  # Only systemd opens what systemd-creds closed; such a file is no secret.
  encrypted = cfg.encryptedCredentials or false;
  secret = if encrypted then public else text;
  tokenFile = secret cfg.tokenFile;
  keyFile = secret cfg.keyFile;
  allowFile = public cfg.allowFile;
  derpMap = public cfg.derpMap;
  region = text cfg.region;

  under = dir: path: path == dir || hasPrefix "${dir}/" path;
  underAny = dirs: path: builtins.any (dir: under dir path) dirs;
  normal = path: !hasInfix "//" path && builtins.match ".*/\\.\\.?(/.*)?|.+/" path == null;
  # Hidden from the service, or not what others see there.
  hidden = [
    "/home"
    "/root"
    "/tmp"
    "/var/tmp"
    "/Users"
  ];
  readOnly = hidden ++ [
    "/dev"
    "/etc"
    "/proc"
    "/run"
    "/sys"
    "/usr"
    "/System"
    "/Library"
    builtins.storeDir
  ];
  # What others live in, too: it is not to become the service's own.
  shared = [
    "/Applications"
    "/Volumes"
    "/bin"
    "/boot"
    "/lib"
    "/lib64"
    "/media"
    "/mnt"
    "/nix"
    "/opt"
    "/private"
    "/private/var"
    "/private/var/lib"
    "/sbin"
    "/srv"
    "/var"
    "/var/cache"
    "/var/db"
    "/var/lib"
    "/var/log"
    "/var/spool"
  ];

  # An address as { path } or { host port }; null: it cannot be listened on.
  address =
    value:
    let
      unix = builtins.match "(unix://)?(/[^[:space:]\\]+)" value;
      path = builtins.elemAt unix 1;
      v4 = builtins.match "(tcp://)?([0-9.]+):([0-9]+)" value;
      v6 = builtins.match "(tcp://)?\\[([0-9a-fA-F:.]+)]:([0-9]+)" value;
      tcp = if v4 != null then v4 else v6;
      number = if v4 != null then ip4 else ip6;
    in
    if unix != null && builtins.stringLength path <= pathMax && normal path then
      { inherit path; }
    else if
      tcp != null
      && validPort (builtins.elemAt tcp 2)
      && builtins.match number (builtins.elemAt tcp 1) != null
    then
      {
        host = builtins.elemAt tcp 1;
        port = toPort (builtins.elemAt tcp 2);
        v6 = v6 != null;
      }
    else
      null;
  ip4 = "(${byte}\\.){3}${byte}";
  byte = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])";
  ip6 = "(${group}:){7}${group}|(${group}:){6}${ip4}|(${groups})?::(${groups}|(${groups}:)?${ip4})?";
  groups = "${group}(:${group}){0,6}";
  group = "[0-9a-fA-F]{1,4}";
  toPort = digits: builtins.fromJSON (builtins.elemAt (builtins.match "0*([0-9]+)" digits) 0);
  validPort =
    digits: builtins.stringLength digits <= 5 && toPort digits >= 1 && toPort digits <= 65535;
  listen = if builtins.isString cfg.listen then [ cfg.listen ] else cfg.listen;
  wanted = listen ++ optional cfg.compatSocket "/tmp/zmqcat.sock";
  addresses = lib.unique (builtins.filter (a: a != null) (map address wanted));
  badListen = builtins.filter (a: address a == null) listen;
  # What other hosts can reach.
  open = builtins.filter (
    a: a ? port && builtins.match "127\\..*|::1|0*:.*:0*1" a.host == null
  ) addresses;

  # A forwarded port as { local remote }.
  forward =
    value:
    let
      pair = builtins.match "([0-9]+):([0-9]+)" (toString value);
    in
    if pair == null then
      {
        local = value;
        remote = value;
      }
    else
      {
        local = toPort (builtins.elemAt pair 0);
        remote = toPort (builtins.elemAt pair 1);
      };
  forwards = map forward cfg.forward;
  badForward = builtins.filter (
    value:
    let
      f = forward value;
      lowest = if hub then 1 else 1024;
    in
    hub && (builtins.isString value || f.remote == 7)
    || f.local < lowest
    || f.local > 65535
    || f.remote < 1
    || f.remote > 65535
  ) cfg.forward;
  locals = map (f: f.local) forwards;

  badAllow = builtins.filter (k: builtins.match "nodekey:[0-9a-f]{64}" k == null) cfg.allow;
  badArgs = builtins.filter (a: builtins.match "tc[A-Za-z0-9_-]{32,}=*" a != null) cfg.extraArgs;
  # Arguments that are options here.
  better = {
    "--allow" = "allow";
    "--allow-file" = "allowFile";
    "--derp-map" = "derpMap";
    "--forward" = "forward";
    "--fsync" = "fsync";
    "--heartbeat" = "heartbeat";
    "--key-file" = "keyFile";
    "--listen" = "listen";
    "--local" = "local";
    "--mailbox" = "mailbox";
    "--region" = "region";
    "--token-file" = "tokenFile";
  };
  given =
    flag: builtins.any (a: a == flag || hasPrefix "${flag}=" a) cfg.extraArgs;

  # A mailbox file of the Go program: it becomes a directory, so its folder has to be writable.
  fileMailbox = mailbox != null && hasSuffix ".json" mailbox;
in
rec {
  inherit
    addresses
    encrypted
    fileMailbox
    hub
    keyFile
    mailbox
    open
    role
    state
    tokenFile
    ;
  unit = "zmqcat-${role}";
  ownMailbox = mailbox != null && under state mailbox;
  ownKey = keyFile != null && under state keyFile;
  # The directory that the service writes outside its own; null: none.
  writable =
    if mailbox == null || ownMailbox then
      null
    else if fileMailbox then
      builtins.dirOf mailbox
    else
      mailbox;

  # Of the list itself the unit names a file where that can be reloaded.
  arguments =
    { allowArguments, keyArgument }:
    optional (hub && cfg.local) "--local"
    ++ optionals (mailbox != null) [
      "--mailbox"
      mailbox
    ]
    ++ optionals (hub && cfg.fsync != "always") [
      "--fsync"
      cfg.fsync
    ]
    ++ optionals (hub && cfg.heartbeat != "5s" && cfg.heartbeat != "") [
      "--heartbeat"
      cfg.heartbeat
    ]
    ++ allowArguments
    ++ optionals (keyFile != null) [
      "--key-file"
      keyArgument
    ]
    ++ lib.concatMap (p: [
      "--forward"
      (toString p)
    ]) cfg.forward
    ++ optionals (derpMap != null) [
      "--derp-map"
      derpMap
    ]
    ++ optionals (region != null) [
      "--region"
      region
    ]
    ++ cfg.extraArgs;
  allowEach = lib.concatMap (key: [
    "--allow"
    key
  ]) cfg.allow;
  allowNamed = optionals (allowFile != null) [
    "--allow-file"
    allowFile
  ];

  warnings =
    optional (role != cfg.role) ''
      services.zmqcat.role: write "${role}" for "${cfg.role}". /tmp/zmqcat.sock is then there with
      compatSocket = true only.''
    ++ optional (builtins.isString cfg.listen) ''
      services.zmqcat.listen: write a list: [ "${toString cfg.listen}" ].''
    ++ optional fileMailbox ''
      services.zmqcat.mailbox: ${mailbox} is a directory after the first start. A name that says
      so: stop ${unit}, move it to ${lib.removeSuffix ".json" mailbox} and write that here.''
    ++ map (flag: ''
      services.zmqcat.extraArgs: write ${flag} as services.zmqcat.${better.${flag}}.'') (
      builtins.filter given (builtins.attrNames better)
    )
    ++ optional (!hub && cfg.heartbeat != "5s" && cfg.heartbeat != "") ''
      services.zmqcat.heartbeat is for a hub: of a spoke remove it.''
    ++ optional (cfg.openFirewall && open == [ ]) ''
      services.zmqcat.openFirewall: no address in listen can be reached by other hosts, and spokes
      need no open port. Remove it, or listen on such an address.'';

  assertions = import ./assertions.nix {
    inherit lib cfg;
    facts = {
      inherit
        addresses
        allowFile
        badAllow
        badArgs
        badForward
        badListen
        derpMap
        encrypted
        fileMailbox
        hidden
        hub
        keyFile
        listen
        locals
        mailbox
        normal
        ownKey
        pathMax
        readOnly
        region
        shared
        state
        tokenFile
        under
        underAny
        validPort
        ;
    };
  };
}
