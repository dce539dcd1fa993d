"""What failed is told at once: a run that a clock cuts off never gets to the end, where pytest tells it."""


class Failures:
    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter:
            reporter.ensure_newline()
            reporter.write_line(report.longreprtext)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # with pytest-xdist: where all reports come together
        config.pluginmanager.register(Failures(config))
