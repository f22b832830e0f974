"""What the figures of bench/run say of a goal, with figures that are made up."""
import os, sys, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "bench")]
import program
import judge
import table


def result(figures, **more):
    r = judge.Result("row", "a row", **more)
    for who, values in figures.items():
        for v in values:
            r.note(who, v)
    return r


def judged(figures, **more):
    return judge.judge(result(figures, **more))


class Judge(unittest.TestCase):
    def test_of_rates_more_is_better(self):
        got = judged({"zmqcat": [30], "redis": [20]}, goal=1.0, against=("redis",))
        self.assertEqual((got["ratio"], got["met"], got["against"]), (1.5, True, "redis"))
        got = judged({"zmqcat": [20], "redis": [40]}, goal=1.0, against=("redis",))
        self.assertEqual((got["ratio"], got["met"]), (0.5, False))

    def test_of_latencies_less_is_better(self):
        for unit in ("us", "ms", "B", "files"):
            got = judged({"zmqcat": [20], "redis": [30]}, unit=unit, goal=1.0, against=("redis",))
            self.assertEqual((got["ratio"], got["met"]), (1.5, True))
            got = judged({"zmqcat": [40], "redis": [30]}, unit=unit, goal=1.0, against=("redis",))
            self.assertEqual((got["ratio"], got["met"]), (0.75, False))

    def test_the_goal_is_about_the_best_of_several(self):
        three = ("beanstalkd", "redis", "mosquitto")
        figures = {"zmqcat": [10], "beanstalkd": [9], "redis": [12], "mosquitto": [11]}
        got = judged(figures, goal=1.0, against=three)
        self.assertEqual((got["against"], got["met"]), ("redis", False))
        got = judged(figures, unit="us", goal=1.0, against=three)
        self.assertEqual((got["against"], got["met"]), ("beanstalkd", False))
        got = judged(dict(figures, nats=[99]), goal=0.8, against=three)
        self.assertEqual((got["against"], got["met"]), ("redis", True))

    def test_a_peer_that_is_missing_judges_nothing(self):
        got = judged({"zmqcat": [10]}, goal=1.0, against=("redis", "beanstalkd"))
        self.assertEqual((got["against"], got["ratio"], got["met"]), (None, None, None))
        got = judged({"zmqcat": [10], "redis": [30]}, goal=1.0, against=("nats",))
        self.assertEqual((got["ratio"], got["met"]), (None, None))
        got = judged({"zmqcat": [10], "redis": [8]}, goal=1.0, against=("redis", "beanstalkd"))
        self.assertEqual((got["against"], got["met"]), ("redis", True))

    def test_without_a_goal_there_is_a_ratio_and_no_verdict(self):
        got = judged({"zmqcat": [10], "redis": [20]}, against=("redis",))
        self.assertEqual((got["ratio"], got["met"]), (0.5, None))

    def test_nothing_is_rounded_to_the_better_side(self):
        for ours, goal, met, text in ((995, 1.0, False, "0.99"), (999.9, 1.0, False, "0.99"),
                                      (1000, 1.0, True, "1.00"), (799, 0.8, False, "0.79"),
                                      (800, 0.8, True, "0.80"), (1299, 1.3, False, "1.29")):
            got = judged({"zmqcat": [ours], "redis": [1000]}, goal=goal, against=("redis",))
            self.assertEqual((got["met"], table.ratio_cell(got)), (met, text), ours)
        for ours, met, text in ((1212, False, "1.22"), (1201, False, "1.21"), (1200, True, "1.20"),
                                (1000, True, "1.00")):
            got = judged({"zmqcat": [ours], "few": [1000]}, unit="us", within=1.2,
                         against=("few",))
            self.assertEqual((got["met"], table.ratio_cell(got)), (met, text), ours)

    def test_a_bound(self):
        for ours, met in ((199, True), (200, True), (200.4, False), (0, True)):
            got = judged({"zmqcat": [ours], "redis": [1]}, unit="B", bound=200)
            self.assertEqual((got["met"], got["against"]), (met, None), ours)
        self.assertEqual(judged({"zmqcat": [400]}, unit="B", bound=200)["ratio"], 0.5)

    def test_ratios_are_those_of_the_rounds(self):
        """The machine is ten times slower in the second round, which changes no ratio."""
        got = judged({"zmqcat": [30, 3, 20], "redis": [20, 2, 20]}, goal=1.0, against=("redis",))
        self.assertEqual((got["ratio"], got["ratio_min"], got["ratio_max"]), (1.5, 1.0, 1.5))
        self.assertEqual(table.ratio_cell(got), "1.50 (1.00-1.50)")

    def test_the_worst_round_counts_where_it_is_said(self):
        got = judged({"zmqcat": [5, 130, 6]}, unit="ms", bound=100, worst=True)
        self.assertEqual((got["value"]["zmqcat"], got["met"]), (130, False))
        got = judged({"zmqcat": [5, 130, 6]}, unit="ms", bound=100)
        self.assertEqual((got["value"]["zmqcat"], got["met"]), (6, True))

    def test_processor_time(self):
        r = judge.Result("row", "a row", goal=1.0, against=("redis",))
        r.note("zmqcat", 10, 4.0)
        r.note("redis", 10, 6.0)
        self.assertEqual(judge.judge(r)["cpu_ratio"], 1.5)

    def test_who_failed_is_forgotten(self):
        r = result({"zmqcat": [10], "redis": [99], "beanstalkd": [5]}, goal=1.0,
                   against=("redis", "beanstalkd"))
        r.forget("redis")
        self.assertEqual(judge.judge(r)["against"], "beanstalkd")


class Table(unittest.TestCase):
    rows = [judged({"zmqcat": [1500, 2500], "redis": [1000, 1000], "control": [7]}, goal=1.0,
                   against=("redis",)),
            judged({"zmqcat": [7e6], "nats": [12e6]}, unit="B", bound=6e6),
            judged({"zmqcat": [5.0], "few": [4.5]}, unit="us", within=1.2, against=("few",))]

    def test_cells(self):
        self.assertEqual(table.lines(self.rows), [
            ["work", "ours", "redis", "nats", "beside", "ratio", "goal", "met", "cpu"],
            ["a row", "2k", "1k", "-", "control 7", "2.00 (1.50-2.50)", "1.00 redis", "yes", "-"],
            ["a row", "7 MB", "-", "12 MB", "-", "0.85", "<= 6 MB", "NO", "-"],
            ["a row", "5 us", "-", "-", "few 4.5 us", "1.12", "<= 1.20 few", "yes", "-"]])
        self.assertEqual(table.lines(self.rows, wide=True)[1][1], "2k (1.5k-2.5k)")

    def test_units(self):
        for x, unit, text in ((9.5, "us", "9.5 us"), (1500, "us", "1.5 ms"), (2e6, "us", "2 s"),
                              (6420, "ms", "6.42 s"), (1e4, "B", "10 kB"), (2, "files", "2"),
                              (213000, "/s", "213k")):
            self.assertEqual(table.with_unit(x, unit), text)

    def test_markdown(self):
        got = table.markdown(self.rows).split("\n")
        self.assertEqual(got[1], "|" + " --- |" * 9)
        self.assertEqual({line.count("|") for line in got}, {10})
        self.assertIn("| a row | 7 MB | - | 12 MB | - | 0.85 | <= 6 MB | NO | - |", got)


if __name__ == "__main__":
    program.main()
