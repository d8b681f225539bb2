"""The package itself: types for checkers, documentation, what it exports."""

import ast
import contextlib
import importlib.resources
import inspect
import io
import os
import tempfile
import unittest

import burst
from burst import _burst

from . import support


class Package(unittest.TestCase):
    def test_everything_that_is_public_says_what_it_is(self):
        for name in burst.__all__:
            thing = getattr(burst, name)
            self.assertTrue(inspect.getdoc(thing), name)
            if not inspect.isclass(thing) or issubclass(thing, tuple):
                continue
            for member, value in vars(thing).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    self.assertTrue(inspect.getdoc(value), f"{name}.{member}")

    def test_the_stubs_are_those_of_the_native_part(self):
        files = importlib.resources.files(burst)
        self.assertTrue(files.joinpath("py.typed").is_file())
        stubs = ast.parse(files.joinpath("_burst.pyi").read_text())
        classes = {node.name: node for node in stubs.body if isinstance(node, ast.ClassDef)}
        native = {name for name, value in vars(_burst).items() if inspect.isclass(value)}
        self.assertEqual(set(classes), native)
        for name, node in classes.items():
            stated = {item.name: [arg.arg for arg in item.args.args] for item in node.body}
            there = {key: value for key, value in vars(getattr(_burst, name)).items() if not key.startswith("_")}
            self.assertEqual(set(stated), set(there), name)
            for method, arguments in stated.items():
                signature = inspect.signature(getattr(getattr(_burst, name), method))
                self.assertEqual(list(signature.parameters), arguments, f"{name}.{method}")

    def test_the_program_of_the_readme_runs(self):
        before, path = os.getcwd(), os.environ["PATH"]
        self.addCleanup(os.chdir, before)
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.chdir(support.ROOT)
        with tempfile.TemporaryDirectory() as folder, io.StringIO() as said:
            os.symlink(os.path.abspath(support.PROGRAM), os.path.join(folder, "burst"))
            os.environ["PATH"] = f"{folder}:{path}"
            with contextlib.redirect_stdout(said):
                exec(_first_program(support.ROOT / "python" / "README.md"), {})
            self.assertRegex(said.getvalue(), r"^\d \d")


def _first_program(file):
    return file.read_text().split("```python\n")[1].split("```")[0]
