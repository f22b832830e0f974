# Addresses in services.zmqcat.
{
  plain,
  # Unix paths have this many bytes at most.
  pathMax,
}:
let
  inherit (builtins)
    elemAt
    filter
    isString
    length
    match
    ;
  octet = "(25[0-5]|(2[0-4]|1[0-9]|[1-9])?[0-9])";
  v4 = host: match "${octet}(\\.${octet}){3}" host != null;
  group = "[0-9a-fA-F]{1,4}";
  groups = host: length (filter (g: isString g && g != "") (builtins.split ":" host));
  v6 =
    host:
    let
      # Its last 32 bits may be written as an IPv4 address.
      mixed = match "(.*:)([0-9.]+)" host;
      hex = if mixed != null && v4 (elemAt mixed 1) then "${elemAt mixed 0}0:0" else host;
    in
    match "(${group}:){7}${group}" hex != null
    || match "(${group}(:${group})*)?::(${group}(:${group})*)?" hex != null && groups hex <= 7;
  label = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?";
in
rec {
  toPort = digits: builtins.fromJSON (elemAt (match "0*([0-9]+)" digits) 0);
  validPort =
    digits: builtins.stringLength digits <= 5 && toPort digits >= 1 && toPort digits <= 65535;

  # An address as { path } or { host port v6 }; null: it cannot be listened on.
  parse =
    value:
    let
      unix = match "(unix://)?(/[^[:space:]]+)" value;
      path = elemAt unix 1;
      tcp4 = match "(tcp://)?([0-9.]+):([0-9]+)" value;
      tcp6 = match "(tcp://)?\\[([^]]+)]:([0-9]+)" value;
      tcp = if tcp4 != null then tcp4 else tcp6;
      host = elemAt tcp 1;
      port = elemAt tcp 2;
    in
    if unix != null then
      if plain path && builtins.stringLength path <= pathMax then { inherit path; } else null
    else if tcp != null && (if tcp4 != null then v4 host else v6 host) && validPort port then
      {
        inherit host;
        port = toPort port;
        v6 = tcp6 != null;
      }
    else
      null;

  # Whether a is all addresses of this host, and so leaves the port to nobody else.
  everywhere = a: match "0\\.0\\.0\\.0|[0:]+" a.host != null;
  # Two addresses at the same port; [::] is for IPv4 too.
  clash = a: b: a.port == b.port && (a == b || everywhere a && (a.v6 || !b.v6));

  # The relay of a hub: a number of the map, or a host.
  validRegion =
    value:
    let
      parts = match "(${label}(\\.${label})*|\\[([^]]+)])(:([0-9]+))?" value;
      bracketed = elemAt parts 4;
      port = elemAt parts 6;
    in
    if match "[0-9]+" value != null then
      match "[1-9][0-9]{0,8}" value != null
    else
      parts != null && (bracketed == null || v6 bracketed) && (port == null || validPort port);
}
