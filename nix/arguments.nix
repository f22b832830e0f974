# The options of zmqcat-hub and zmqcat-spoke, as --help lists them.
let
  inherit (builtins)
    elemAt
    head
    match
    tail
    ;
  # A bare number is seconds.
  number = "([0-9]{1,5}(\\.[0-9]*)?|\\.[0-9]+)";
  duration = "${number}|(${number}(ms|s|m|h)){1,4}";
  count = "[0-9]{1,9}";
  size = "[0-9]{1,9}([bB]|[kmgKMG]([iI]?[bB])?)?";
  some = ".+";

  # What the value looks like; null: the option has none.
  shared = {
    control = some;
    derp-map = some;
    key-file = some;
    listen = some;
    log-level = "err|warning|notice|info|debug";
    name = ".*";
    quiet = null;
    socket-group = some;
    socket-mode = "0?[0-7]{3}";
    trace = null;
  };
in
rec {
  inherit duration;
  heartbeat = "-?(${duration})";

  options = {
    hub = shared // {
      inherit heartbeat;
      allow = "nodekey:[0-9a-f]{64}";
      allow-file = some;
      clients-max = count;
      forward = "[0-9]{1,5}";
      fsync = "always|batch|never";
      headers-bytes = size;
      headers-max = count;
      local = null;
      mailbox = some;
      mailbox-cap = count;
      mailboxes-max = count;
      max-payload = size;
      no-psk = null;
      open = null;
      print-token = null;
      region = some;
      segment = size;
      session-bytes = size;
      sessions-max = count;
      sub-buffer = count;
      token-out = some;
      topics-max = count;
    };
    spoke = shared // {
      forward = "[0-9]{1,5}(:[0-9]{1,5})?";
      token-file = some;
      wait-hub = duration;
    };
  };

  # Options of this module by the arguments that they stand for.
  better = {
    allow = "allow";
    allow-file = "allowFile";
    derp-map = "derpMap";
    forward = "forward";
    fsync = "fsync";
    heartbeat = "heartbeat";
    key-file = "keyFile";
    listen = "listen";
    local = "local";
    mailbox = "mailbox";
    region = "region";
    token-file = "tokenFile";
  };
  # Of these the unit has to know: sockets, directories and credentials are made for the daemon.
  ofTheUnit = [
    "key-file"
    "listen"
    "mailbox"
    "token-file"
  ];
  # Those of a hub that are about its tunnel.
  ofTheTunnel = [
    "allow"
    "allow-file"
    "derp-map"
    "forward"
    "no-psk"
    "open"
    "print-token"
    "region"
    "token-out"
  ];

  given = option: builtins.any (a: a == "--${option}" || match "--${option}=.*" a != null);

  # What of these arguments the daemon would not take.
  unknown =
    role: args:
    let
      first = head args;
      rest = tail args;
      word = match "--([a-z-]+)(=(.*))?" first;
      name = elemAt word 0;
      pattern = options.${role}.${name};
      glued = elemAt word 1 != null;
      value = if glued then elemAt word 2 else head rest;
    in
    if args == [ ] then
      [ ]
    else if word == null || !(options.${role} ? ${name}) || pattern == null && glued then
      [ first ] ++ unknown role rest
    else if pattern == null then
      unknown role rest
    else if !glued && rest == [ ] then
      [ first ]
    else
      (if match pattern value != null then [ ] else [ "--${name} ${value}" ])
      ++ unknown role (if glued then rest else tail rest);
}
