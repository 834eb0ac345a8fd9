"""The files that rules look at, and C text without its comments."""

import os
import re
import shutil
import subprocess


# The folders of src/ that includes are searched in: "ring/ring.h" is src/core/ring/ring.h.
FLOORS = ("core", "probe", "record", "read", "command")


class MissingTool(Exception):
    """A program that a rule needs is not installed."""


class Tree:
    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.paths = sorted(self._tracked() or self._walked())

    def _tracked(self):
        """What git has or would take, so that build directories and the like do not count."""
        if not os.path.exists(os.path.join(self.root, ".git")) or not shutil.which("git"):
            return None
        listed = subprocess.run(
            ["git", "-C", self.root, "ls-files", "-z", "-co", "--exclude-standard"],
            capture_output=True, check=False)
        if listed.returncode != 0:
            return None
        paths = os.fsdecode(listed.stdout).split("\0")
        return {path for path in paths if path and os.path.lexists(os.path.join(self.root, path))}

    def _walked(self):
        paths = set()
        for directory, children, files in os.walk(self.root):
            top = os.path.relpath(directory, self.root) == "."
            children[:] = [child for child in children
                           if child not in (".git", "node_modules", ".cache", "__pycache__")
                           and not (top and child.startswith("build"))]
            paths.update(os.path.relpath(os.path.join(directory, name), self.root)
                         for name in files)
        return paths

    def full(self, path):
        return os.path.join(self.root, path)

    def text(self, path):
        with open(self.full(path), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def include_flags(self):
        return [flag for floor in FLOORS for flag in ("-I", self.full(f"src/{floor}"))] + [
            "-I", self.full("src")]

    def included(self, target):
        """The file of ours that `#include "target"` takes, or None."""
        return next((path for path in [f"src/{floor}/{target}" for floor in FLOORS] + [f"src/{target}"]
                     if path in self.paths), None)

    def first_line(self, path):
        if not os.path.isfile(self.full(path)):
            return ""
        with open(self.full(path), "rb") as file:
            return file.readline(200).decode("utf-8", errors="replace")

    def select(self, *folders, suffixes=(".c", ".h")):
        """The files under these folders with these endings."""
        return [path for path in self.paths
                if path.endswith(tuple(suffixes))
                and any(path.startswith(folder + "/") for folder in folders)]


_TOKEN = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def without_comments(text, keep_strings):
    """C text with each comment, and each literal unless kept, blanked; lines stay where they are."""
    def blank(match):
        token = match.group(0)
        if keep_strings and token[0] in "\"'":
            return token
        return re.sub(r"[^\n]", " ", token)
    return _TOKEN.sub(blank, text)


def lines_matching(text, pattern):
    """Yields (line number, match) of each match."""
    for match in re.finditer(pattern, text):
        yield text.count("\n", 0, match.start()) + 1, match
