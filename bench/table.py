"""The table of what was found, for a terminal or in Markdown."""
import math

PEERS = ("beanstalkd", "redis", "mosquitto", "nats")


def number(x, space=""):
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if abs(x) >= size:
            return "%.3g%s%s" % (x / size, space, sign)
    return "%.3g%s" % (x, space)


def with_unit(x, unit):
    if unit in ("/s", "files"):
        return number(x)
    if unit in ("us", "ms"):
        for larger in ("ms", "s")[("us", "ms").index(unit):]:
            if x >= 1000:
                x, unit = x / 1000, larger
        return "%.3g %s" % (x, unit)
    return number(x, " ") + unit


def ratio_text(x, within=False):
    """Two places, never to the better side: 0.995 is no 1.00, and 1.201 no 1.20."""
    if x is None:
        return "-"
    hundredths = math.ceil(x * 100 - 1e-9) if within else math.floor(x * 100 + 1e-9)
    return "%.2f" % (hundredths / 100)


def cell(row, who, wide):
    values = row["figures"].get(who)
    if not values:
        return "-"
    text = with_unit(row["value"][who], row["unit"])
    if wide and len(values) > 1:
        text += " (%s-%s)" % (number(min(values)), number(max(values)))
    return text


def ratio_cell(row):
    within = row["within"] is not None
    text = ratio_text(row["ratio"], within)
    if row["ratio_min"] is not None and row["ratio_max"] > row["ratio_min"]:
        text += " (%s-%s)" % (ratio_text(row["ratio_min"], within),
                              ratio_text(row["ratio_max"], within))
    return text


def goal_cell(row):
    against = " " + row["against"] if row["against"] else ""
    if row["bound"] is not None:
        return "<= " + with_unit(row["bound"], row["unit"])
    if row["within"] is not None:
        return "<= %.2f%s" % (row["within"], against)
    return "-" if row["goal"] is None else "%.2f%s" % (row["goal"], against)


def beside(row, wide):
    """What is neither ours nor another broker's."""
    others = [w for w in row["figures"] if w != "zmqcat" and w not in PEERS]
    return ", ".join("%s %s" % (w, cell(row, w, wide)) for w in others) or "-"


def lines(rows, wide=False):
    """The table as lists of cells, the head first."""
    peers = [p for p in PEERS if any(p in r["figures"] for r in rows)]
    found = [["work", "ours"] + peers + ["beside", "ratio", "goal", "met", "cpu"]]
    for r in rows:
        found.append([r["title"]] + [cell(r, w, wide) for w in ["zmqcat"] + peers]
                     + [beside(r, wide), ratio_cell(r), goal_cell(r),
                        {None: "-", True: "yes", False: "NO"}[r["met"]],
                        ratio_text(r["cpu_ratio"])])
    return found


def aligned(cells):
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip()
                     for line in cells)


def piped(cells):
    """In Markdown."""
    cells = cells[:1] + [["---"] * len(cells[0])] + cells[1:]
    return "\n".join("| %s |" % " | ".join(line) for line in cells)


def plain(rows, wide=False):
    return aligned(lines(rows, wide))


def markdown(rows, wide=False):
    return piped(lines(rows, wide))
