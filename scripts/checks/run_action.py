#!/usr/bin/env python3
"""Runs a composite action as GitHub's runner does, with folders in the place of artifacts and caches.

    run_action.py ACTION --kept FOLDER --temp FOLDER [--run N] [--output FILE] [--summary FILE] [NAME=VALUE…]

ACTION is the folder of an action.yml; NAME=VALUE are inputs. Steps with `run` are run by the shell that they name, with
the variables and files that a step has; `if`, `continue-on-error`, `env`, outputs and expressions count. The four
actions of others that are used here have stand-ins, which refuse what those refuse: an artifact that is there already,
one with no files, an input that they do not have. Whatever this runner does not know is an error, and so is everything
that GitHub would not take: text that is no YAML, a key, an input or a context that does not exist.

Outputs of the action go to FILE as NAME=VALUE. Ends with 1 where the action fails. Python 3.9 and PyYAML (without it:
exit code 2).
"""
import argparse
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("run_action: needs PyYAML", file=sys.stderr)
    sys.exit(2)

TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>\d+(?:\.\d+)?)|(?P<word>[A-Za-z_][\w-]*)|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!().\[\]]))")
KEYS = {
    "action": {"name", "description", "author", "inputs", "outputs", "runs", "branding"},
    "input": {"description", "required", "default", "deprecationMessage"},
    "output": {"description", "value"},
    "runs": {"using", "steps"},
    "step": {"name", "id", "if", "run", "shell", "env", "uses", "with", "continue-on-error", "working-directory"},
}


class Wrong(Exception):
    """The action is not what GitHub takes, or a step failed."""


def known(part, found, where):
    if not isinstance(found, dict) or set(found) - KEYS[part]:
        raise Wrong(f"{where}: unknown keys, or no keys at all: {found}")


class Expression:
    """An expression of GitHub: literals, contexts, comparisons, && and ||, and fromJSON."""

    def __init__(self, text, contexts):
        self.contexts, self.tokens, at = contexts, [], 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if not match:
                raise Wrong(f"no expression: {text}")
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self.value = self.either()
        if self.tokens:
            raise Wrong(f"no expression: {text}")

    def next_is(self, *signs):
        if self.tokens and self.tokens[0][1] in signs and self.tokens[0][0] == "sign":
            return self.tokens.pop(0)[1]
        return None

    def either(self):
        value = self.both()
        while self.next_is("||"):
            other = self.both()
            value = value or other
        return value

    def both(self):
        value = self.compared()
        while self.next_is("&&"):
            other = self.compared()
            value = value and other
        return value

    def compared(self):
        value = self.single()
        while sign := self.next_is("==", "!=", "<", ">", "<=", ">="):
            other = self.single()
            if isinstance(value, str) != isinstance(other, str):
                raise Wrong(f"a text is compared with a number: {value!r} {sign} {other!r}")
            value = {"==": value == other, "!=": value != other, "<": value < other, ">": value > other,
                     "<=": value <= other, ">=": value >= other}[sign]
        return value

    def single(self):
        if self.next_is("!"):
            return not self.single()
        if self.next_is("("):
            value = self.either()
            self.expect(")")
            return value
        kind, text = self.tokens.pop(0) if self.tokens else (None, "")
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text)
        if kind != "word":
            raise Wrong(f"no value: {text}")
        if self.next_is("("):
            value = self.either()
            self.expect(")")
            if text != "fromJSON":
                raise Wrong(f"this runner has no function {text}")
            return float(value)
        if text in ("true", "false"):
            return text == "true"
        value = self.contexts
        for name in [text, *self.names()]:
            if not isinstance(value, dict) or name not in value:
                raise Wrong(f"nothing is called {name} there")
            value = value[name]
        return value

    def names(self):
        while self.next_is("."):
            yield self.tokens.pop(0)[1]

    def expect(self, sign):
        if not self.next_is(sign):
            raise Wrong(f"{sign} is missing")


class Runner:
    def __init__(self, args):
        self.args, self.folder = args, pathlib.Path(args.action).resolve()
        try:
            self.action = yaml.safe_load((self.folder / "action.yml").read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise Wrong(f"action.yml is no YAML: {error}") from error
        known("action", self.action, "action.yml")
        self.contexts = {
            "github": {"run_id": args.run, "token": "a-token"},
            "runner": {"temp": str(args.temp.resolve())},
            "steps": {},
        }
        self.contexts["inputs"] = self.inputs(dict(given.split("=", 1) for given in args.inputs))

    def filled(self, text):
        """A value with its expressions worked out, as text."""
        def shown(match):
            value = Expression(match[1], self.contexts).value
            return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else value
        return re.sub(r"\$\{\{(.*?)\}\}", shown, str(text))

    def inputs(self, given):
        values = {}
        for name, about in self.action.get("inputs", {}).items():
            known("input", about, name)
            if about.get("required") and name not in given:
                raise Wrong(f"the input {name} is missing")
            values[name] = given.pop(name, None)
            if values[name] is None:
                values[name] = self.filled(about.get("default", ""))
        if given:
            raise Wrong(f"there are no inputs {', '.join(given)}")
        return values

    def run(self):
        known("runs", self.action["runs"], "runs")
        if self.action["runs"]["using"] != "composite":
            raise Wrong("it is no composite action")
        for nth, step in enumerate(self.action["runs"]["steps"]):
            where = step.get("name") or step.get("uses") or f"step {nth}"
            known("step", step, where)
            condition = step.get("if", True)
            condition = re.fullmatch(r"\$\{\{(.*)\}\}", condition)[1] if str(condition).startswith("${{") else str(condition)
            # Those of a step that is left out are there, and empty.
            outputs = self.contexts["steps"].setdefault(step.get("id", ""), {"outputs": {}})["outputs"]
            if not Expression(condition.lower() if condition in ("True", "False") else condition, self.contexts).value:
                continue
            print(f"---- {where}", flush=True)
            try:
                self.uses(step) if "uses" in step else self.shell(step, outputs)
            except Wrong as wrong:
                if not step.get("continue-on-error"):
                    raise
                print(f"---- {where} failed, and the others go on: {wrong}", flush=True)
        with open(self.args.output, "a", encoding="utf-8") as output:
            for name, about in self.action.get("outputs", {}).items():
                known("output", about, name)
                output.write(f"{name}={self.filled(about['value'])}\n")

    def shell(self, step, outputs):
        if step.get("shell") != "bash":
            raise Wrong("a step of an action has to name its shell, and this runner has bash alone")
        temp = pathlib.Path(self.contexts["runner"]["temp"])
        script, output = temp / "step.sh", temp / "step.output"
        script.write_text(self.filled(step["run"]) + "\n", encoding="utf-8")
        output.write_text("", encoding="utf-8")
        told = {name: self.filled(value) for name, value in step.get("env", {}).items()}
        told |= {"GITHUB_ACTION_PATH": str(self.folder), "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.args.summary.resolve()),
                 "RUNNER_TEMP": str(temp), "GITHUB_ACTIONS": "true", "CI": "true"}
        code = subprocess.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script], env={**os.environ, **told}, check=False).returncode
        if code:
            raise Wrong(f"exit code {code}")
        for line in output.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            outputs[name] = value

    def uses(self, step):
        given = {name: self.filled(value) for name, value in step.get("with", {}).items()}
        stand_ins = {
            "actions/upload-artifact@v4": self.upload, "actions/download-artifact@v4": self.download,
            "actions/cache/save@v4": self.save, "actions/cache/restore@v4": self.restore,
        }
        if step["uses"] not in stand_ins:
            raise Wrong(f"this runner has no {step['uses']}")
        try:
            stand_ins[step["uses"]](**{name.replace("-", "_"): value for name, value in given.items()})
        except TypeError as error:
            raise Wrong(f"{step['uses']}: {error}") from error

    def upload(self, name, path, retention_days="0", compression_level="6", if_no_files_found="warn"):
        if not 0 <= int(retention_days) <= 90 or not 0 <= int(compression_level) <= 9:
            raise Wrong("no number of days, or no level")
        target = self.args.kept / "artifacts" / self.args.run / name
        if target.exists():
            raise Wrong(f"an artifact {name} is there already")
        if not any(pathlib.Path(path).rglob("*")):
            if if_no_files_found == "error":
                raise Wrong(f"no files in {path}")
            return
        shutil.copytree(path, target)

    def download(self, path, pattern, run_id, github_token):
        if not github_token:
            raise Wrong("a token is needed")
        run = self.args.kept / "artifacts" / run_id
        for artifact in sorted(run.iterdir()) if run.is_dir() else []:
            if fnmatch.fnmatchcase(artifact.name, pattern):
                shutil.copytree(artifact, pathlib.Path(path) / artifact.name, dirs_exist_ok=True)

    def save(self, key, path):
        target = self.args.kept / "caches" / key
        # A second one under its key is left out, with a warning.
        if not target.exists():
            shutil.copytree(path, target / "of")
            (target / "path").write_text(path, encoding="utf-8")

    def restore(self, key, path):
        found = self.args.kept / "caches" / key
        # Another path is another version of the cache.
        if found.is_dir() and (found / "path").read_text(encoding="utf-8") == path:
            shutil.copytree(found / "of", path, dirs_exist_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action")
    parser.add_argument("inputs", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--kept", type=pathlib.Path, required=True, help="where artifacts and caches are")
    parser.add_argument("--temp", type=pathlib.Path, required=True, help="the runner's folder for temporary files")
    parser.add_argument("--run", default="1", help="the number of the run")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("/dev/stdout"))
    parser.add_argument("--summary", type=pathlib.Path, default=pathlib.Path("/dev/null"))
    try:
        Runner(parser.parse_intermixed_args()).run()
    except Wrong as wrong:
        print(f"run_action: {wrong}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
