# What services.zmqcat means on either system: addresses, the command line, what is refused and
# what has a better form.
{
  lib,
  cfg,
  # Unix paths have this many bytes at most.
  pathMax,
  # Where the administrator's socket is.
  control,
  # More options that are paths.
  morePaths ? { },
}:
let
  inherit (lib) hasSuffix optional optionals;
  inherit (import ./paths.nix) plain state under;
  inherit (import ./addresses.nix { inherit plain pathMax; }) parse toPort;
  inherit (import ./arguments.nix) better given;

  # `serve` and `join` are the names of the Go program.
  role =
    {
      serve = "hub";
      join = "spoke";
    }
    .${cfg.role} or cfg.role;
  hub = role == "hub";

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

  listen = if builtins.isString cfg.listen then [ cfg.listen ] else cfg.listen;
  wanted = listen ++ optional cfg.compatSocket "/tmp/zmqcat.sock";
  addresses = lib.unique (builtins.filter (a: a != null) (map parse wanted));
  # What other hosts can reach.
  open = builtins.filter (
    a: a ? port && builtins.match "127\\..*|[0:]+1" a.host == null
  ) addresses;

  # A forwarded port as { value local remote }.
  forward =
    value:
    let
      pair = builtins.match "([0-9]+):([0-9]+)" (toString value);
    in
    {
      inherit value;
      local = if pair == null then value else toPort (builtins.elemAt pair 0);
      remote = if pair == null then value else toPort (builtins.elemAt pair 1);
    };
  forwards = map forward cfg.forward;

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
    ++ map (name: ''
      services.zmqcat.extraArgs: write --${name} as services.zmqcat.${better.${name}}.'') (
      builtins.filter (name: given name cfg.extraArgs) (builtins.attrNames better)
    )
    ++ optional (!hub && cfg.heartbeat != "5s" && cfg.heartbeat != "") ''
      services.zmqcat.heartbeat is for a hub: of a spoke remove it.''
    ++ optional (cfg.openFirewall && open == [ ]) ''
      services.zmqcat.openFirewall: no address in listen can be reached by other hosts, and spokes
      need no open port. Remove it, or listen on such an address.'';

  assertions = import ./assertions.nix {
    inherit lib cfg pathMax;
    facts = {
      inherit
        addresses
        allowFile
        control
        derpMap
        encrypted
        fileMailbox
        forwards
        hub
        keyFile
        listen
        mailbox
        morePaths
        ownKey
        region
        role
        tokenFile
        unit
        writable
        ;
    };
  };
}
