# What the module and the flake use of nixpkgs's lib, for an evaluation without nixpkgs: modules
# with priorities, conditions, imports and submodules, and the types that are used. An option that
# does not exist, a value of another type and two different values are errors, as in nixpkgs.
let
  inherit (builtins)
    all
    any
    attrNames
    concatLists
    concatMap
    elem
    filter
    foldl'
    functionArgs
    head
    intersectAttrs
    isAttrs
    isFunction
    isList
    isPath
    isString
    listToAttrs
    map
    match
    removeAttrs
    stringLength
    substring
    toJSON
    ;
  unique = foldl' (acc: x: if elem x acc then acc else acc ++ [ x ]) [ ];
  genAttrs =
    names: f:
    listToAttrs (
      map (name: {
        inherit name;
        value = f name;
      }) names
    );
  filterAttrs =
    f: set: removeAttrs set (filter (name: !f name set.${name}) (attrNames set));
  hasPrefix = prefix: s: substring 0 (stringLength prefix) s == prefix;
  hasSuffix =
    suffix: s:
    stringLength s >= stringLength suffix
    && substring (stringLength s - stringLength suffix) (-1) s == suffix;
  kind = v: if isAttrs v then v._type or "" else "";

  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };
  mkMerge = contents: {
    _type = "merge";
    inherit contents;
  };
  mkOverride = priority: content: {
    _type = "override";
    inherit priority content;
  };

  mkOrder = order: content: {
    _type = "order";
    inherit order content;
  };

  # A definition of many options as definitions without conditions around them: those go inwards, so
  # that the names are known before a condition is looked at.
  push =
    v:
    if kind v == "if" then
      map (builtins.mapAttrs (_: mkIf v.condition)) (push v.content)
    else if kind v == "override" then
      map (builtins.mapAttrs (_: mkOverride v.priority)) (push v.content)
    else if kind v == "merge" then
      concatMap push v.contents
    else
      [ v ];
  # A definition of one option as values with their priorities.
  discharge =
    v:
    if kind v == "if" then
      if v.condition then discharge v.content else [ ]
    else if kind v == "override" then
      map (d: d // { inherit (v) priority; }) (discharge v.content)
    else if kind v == "order" then
      map (d: d // { inherit (v) order; }) (discharge v.content)
    else if kind v == "merge" then
      concatMap discharge v.contents
    else
      [
        {
          priority = 100;
          order = 1000;
          value = v;
        }
      ];

  mergeDefinitions =
    path: type: definitions:
    let
      found = concatMap discharge definitions;
      best = foldl' (p: d: if d.priority < p then d.priority else p) 9999 found;
      values = map (d: d.value) (
        builtins.sort (a: b: a.order < b.order) (filter (d: d.priority == best) found)
      );
      wrong = filter (v: !type.check v) values;
    in
    if values == [ ] then
      throw "The option `${path}' was accessed but has no value defined."
    else if wrong != [ ] then
      throw "A definition for option `${path}' is not of type `${type.name}'."
    else
      type.merge path values;

  evalTree =
    path: options: definitions:
    let
      names = unique (concatMap attrNames options);
      unknown = filter (n: !elem n names) (concatMap attrNames definitions);
      at = name: trees: concatMap (t: if t ? ${name} then [ t.${name} ] else [ ]) trees;
      value =
        name:
        let
          inner = at name options;
          defs = at name definitions;
          option = head inner;
          default = if option ? default then [ (mkOverride 1500 option.default) ] else [ ];
          here = if path == "" then name else "${path}.${name}";
        in
        if kind option == "option" then
          (option.apply or (v: v)) (mergeDefinitions here option.type (defs ++ default))
        else
          evalTree here inner (concatMap push defs);
    in
    if unknown != [ ] then
      throw "The option `${path}.${head unknown}' does not exist."
    else
      genAttrs names value;

  evalModules =
    {
      modules,
      specialArgs ? { },
      prefix ? "",
    }:
    let
      args = {
        inherit lib config options;
      }
      // specialArgs;
      load =
        module:
        let
          m = if isPath module then import module else module;
          v = if isFunction m then m (intersectAttrs (functionArgs m) args) else m;
        in
        concatMap load (v.imports or [ ])
        ++ [
          {
            options = v.options or { };
            config =
              if v ? options || v ? config then v.config or { } else removeAttrs v [ "imports" ];
          }
        ];
      loaded = concatMap load modules;
      options = foldl' merge { } (map (m: m.options) loaded);
      config = evalTree prefix (map (m: m.options) loaded) (concatMap (m: push m.config) loaded);
    in
    {
      inherit config options;
    };
  # Options of several modules as one tree, to look at.
  merge =
    a: b:
    a
    // builtins.mapAttrs (
      name: v: if a ? ${name} && kind v != "option" then merge a.${name} v else v
    ) b;

  one =
    path: values:
    if all (v: v == head values) values then
      head values
    else
      throw "The option `${path}' has conflicting definition values.";
  simple = name: check: {
    inherit name check;
    merge = one;
  };
  types = {
    bool = simple "boolean" builtins.isBool;
    int = simple "signed integer" builtins.isInt;
    ints.positive = simple "positive integer" (v: builtins.isInt v && v > 0);
    port = simple "port number" (v: builtins.isInt v && v >= 0 && v <= 65535);
    anything = simple "anything" (_: true);
    lines = simple "string" isString // {
      merge = _: builtins.concatStringsSep "\n";
    };
    str = simple "string" isString;
    package = simple "package" (v: isAttrs v && v.type or "" == "derivation");
    path = simple "absolute path" (
      v: (isPath v || isString v || isAttrs v && v ? outPath) && hasPrefix "/" (toString v)
    );
    enum = of: simple "one of ${toJSON of}" (v: elem v of);
    strMatching = re: simple "string matching ${re}" (v: isString v && match re v != null);
    either = a: b: {
      name = "${a.name} or ${b.name}";
      check = v: a.check v || b.check v;
      merge = path: values: if all a.check values then a.merge path values else b.merge path values;
    };
    oneOf = of: foldl' types.either (head of) (builtins.tail of);
    nullOr = t: {
      name = "null or ${t.name}";
      check = v: v == null || t.check v;
      merge = path: values: if head values == null then one path values else t.merge path values;
    };
    listOf = t: {
      name = "list of ${t.name}";
      check = isList;
      merge = path: values: map (v: mergeDefinitions "${path}.*" t [ v ]) (concatLists values);
    };
    attrsOf = t: {
      name = "attribute set of ${t.name}";
      check = isAttrs;
      merge =
        path: values:
        let
          pushed = concatMap push values;
          defs = name: concatMap (v: if v ? ${name} then [ v.${name} ] else [ ]) pushed;
          names = unique (concatMap attrNames pushed);
          used = filter (n: concatMap discharge (defs n) != [ ]) names;
        in
        genAttrs used (
          name: mergeDefinitions "${path}.${name}" ((t.named or (_: t)) name) (defs name)
        );
    };
    submodule =
      module:
      let
        named = name: {
          name = "submodule";
          check = isAttrs;
          inherit named;
          merge =
            prefix: values:
            (evalModules {
              inherit prefix;
              specialArgs = { inherit name; };
              modules = [ module ] ++ map (config: { inherit config; }) values;
            }).config;
        };
      in
      named "";
  };

  lib = {
    inherit
      concatMap
      evalModules
      filterAttrs
      genAttrs
      hasPrefix
      hasSuffix
      mkIf
      mkMerge
      mkOrder
      mkOverride
      types
      unique
      ;
    mkDefault = mkOverride 1000;
    mkForce = mkOverride 50;
    mkBefore = mkOrder 500;
    mkAfter = mkOrder 1500;
    mkOption = attrs: attrs // { _type = "option"; };
    mkEnableOption =
      what:
      lib.mkOption {
        type = types.bool;
        default = false;
        description = "Whether to enable ${what}.";
      };
    literalExpression = text: {
      _type = "literalExpression";
      inherit text;
    };
    hasInfix = infix: s: builtins.replaceStrings [ infix ] [ "" ] s != s;
    removeSuffix =
      suffix: s:
      if hasSuffix suffix s then substring 0 (stringLength s - stringLength suffix) s else s;
    concatMapStrings = f: list: builtins.concatStringsSep "" (map f list);
    optionalString = condition: v: if condition then v else "";
    escapeShellArg =
      v:
      let
        s = toString v;
      in
      if match "[[:alnum:],._+:@%/-]+" s != null then
        s
      else
        "'${builtins.replaceStrings [ "'" ] [ "'\\''" ] s}'";
    escapeShellArgs = list: builtins.concatStringsSep " " (map lib.escapeShellArg list);
    optional = condition: v: if condition then [ v ] else [ ];
    optionals = condition: v: if condition then v else [ ];
    optionalAttrs = condition: v: if condition then v else { };
    cleanSourceWith = { src, filter }: builtins.path {
      name = "source";
      path = src;
      inherit filter;
    };
    licenses.mit = "MIT";
    platforms = {
      linux = [ "x86_64-linux" "aarch64-linux" ];
      darwin = [ "x86_64-darwin" "aarch64-darwin" ];
    };
  };
in
lib
