# What both daemons may do: the same as in systemd/*.service.
{
  LimitNOFILE = 65536;
  LimitCORE = 0;
  UMask = "0077";
  # No PrivateUsers: it hides the uids of clients, which are their identities on the bus.
  CapabilityBoundingSet = "";
  AmbientCapabilities = "";
  NoNewPrivileges = true;
  ProtectSystem = "strict";
  ProtectHome = true;
  PrivateTmp = true;
  PrivateDevices = true;
  PrivateMounts = true;
  DevicePolicy = "closed";
  ProtectProc = "invisible";
  ProcSubset = "pid";
  ProtectClock = true;
  ProtectHostname = true;
  ProtectKernelTunables = true;
  ProtectKernelModules = true;
  ProtectKernelLogs = true;
  ProtectControlGroups = true;
  RestrictAddressFamilies = "AF_UNIX AF_INET AF_INET6 AF_NETLINK";
  RestrictNamespaces = true;
  RestrictRealtime = true;
  RestrictSUIDSGID = true;
  LockPersonality = true;
  MemoryDenyWriteExecute = true;
  KeyringMode = "private";
  RemoveIPC = true;
  SystemCallArchitectures = "native";
  SystemCallFilter = [
    "@system-service"
    "~@privileged @resources"
  ];
  SystemCallErrorNumber = "EPERM";
}
