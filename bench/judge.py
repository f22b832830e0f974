"""What a row found, and what that says of its goal. No figure is rounded before it is judged."""
import statistics


class Result:
    """Figures of one kind: those of our hub, of other brokers, and of what is beside them."""
    unit = "/s"      # or us, ms, B, files; only of /s more is better
    goal = None      # a ratio to the best of `against`, made so that more is better
    within = None    # ours is at most so many times that of `against`
    bound = None     # ours is at most this
    against = ()     # the contenders that the goal is about
    worst = False    # the worst round counts, not the median
    figure = "rate"  # what it takes from the line of the load engine

    def __init__(self, name, title, **more):
        self.name, self.title = name, title
        self.__dict__.update(more)
        self.figures, self.cpu = {}, {}

    @property
    def more_is_better(self):
        return self.unit == "/s"

    def note(self, who, figure, cpu_us=None):
        self.figures.setdefault(who, []).append(figure)
        if cpu_us is not None:
            self.cpu.setdefault(who, []).append(cpu_us)

    def forget(self, who):
        self.figures.pop(who, None)
        self.cpu.pop(who, None)

    def value(self, who):
        """The one figure that stands for all rounds."""
        values = self.figures[who]
        if self.worst:
            return min(values) if self.more_is_better else max(values)
        return statistics.median(values)


def best(result):
    """The contender that the goal is about: of those that were measured the best, or None."""
    there = [w for w in result.against if w in result.figures]
    if not there:
        return None
    return (max if result.more_is_better else min)(there, key=result.value)


def ratios(result, other):
    """Ours to another's, round by round, so that what slows a round slows both of it."""
    pairs = [(a, b) for a, b in zip(result.figures["zmqcat"], result.figures[other])
             if a > 0 and b > 0]
    if result.more_is_better or result.within is not None:
        return [a / b for a, b in pairs]
    return [b / a for a, b in pairs]


def judge(result):
    """What the table and the JSON say of it beside its figures. met is None without a goal, or when
    nobody whom it is about was there."""
    ours, other = result.value("zmqcat"), best(result)
    each = ratios(result, other) if other else []
    ratio = statistics.median(each) if each else None
    met = None
    if result.bound is not None:
        met, ratio, each, other = ours <= result.bound, None, [], None
        if ours > 0:
            ratio = result.bound / ours
    elif ratio is not None and result.within is not None:
        met = ratio <= result.within
    elif ratio is not None and result.goal is not None:
        met = ratio >= result.goal
    cpu = {k: statistics.median(v) for k, v in result.cpu.items()}
    of_cpu = cpu[other] / cpu["zmqcat"] if other in cpu and cpu.get("zmqcat") else None
    return {"name": result.name, "title": result.title, "unit": result.unit,
            "figures": result.figures, "value": {w: result.value(w) for w in result.figures},
            "cpu_us": cpu, "cpu_ratio": of_cpu, "goal": result.goal, "within": result.within,
            "bound": result.bound, "against": other, "ratio": ratio,
            "ratio_min": min(each, default=None), "ratio_max": max(each, default=None),
            "met": met}
