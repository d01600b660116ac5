//! The part of a compiler's words that says file, line and reason: what embeds a whole language says much more about itself.

use crate::cli::plugin::template::Language;

/// What Python says of a package that is not there.
const NO_MODULE: &str = "ModuleNotFoundError";

/// The reason by itself; all that was said where there is none to be found. rustc's words are all about the sources.
pub(super) fn reason(language: Language, said: &str) -> String {
    let found = match language {
        Language::Rust => said.to_owned(),
        Language::Javascript => of_javascript(said),
        Language::Python => of_python(said),
    };
    if found.trim().is_empty() { said.to_owned() } else { found }
}

fn of_python(said: &str) -> String {
    let before = |text: &str, end: &str| text.split(end).next().unwrap_or_default().to_owned();
    let reason = before(&before(said, "Stack backtrace:"), "Caused by:");
    // The compiler is itself a Python program, which fails with the guest's words.
    let reason = reason.split_once("AssertionError: ").map_or(reason.as_str(), |(_, guests)| guests);
    // The sources are mounted under a name of the compiler's.
    let reason = reason.replace("File \"/0/", "File \"").trim_end().to_owned();
    if reason.contains(NO_MODULE) {
        return format!(
            "{reason}\nA plugin imports the standard library of the Python that the compiler brings, and pure Python modules that lie beside it: put the package's there."
        );
    }
    reason
}

/// Up to the first error, without the place in the compiler that threw it.
fn of_javascript(said: &str) -> String {
    let ours = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("at ") && !line.starts_with("Node.js v")
    };
    let lines: Vec<&str> = said.lines().filter(ours).collect();
    let error = lines.iter().position(|line| line.split(':').next().is_some_and(is_error));
    let end = error.map_or(lines.len(), |error| error + 1);
    let thrown_inside = lines.iter().take(end).any(|line| line.contains("/node_modules/"));
    let start = error.filter(|_| thrown_inside).unwrap_or(0);
    lines.get(start..end).unwrap_or_default().join("\n")
}

/// `SyntaxError`, `Error` and the like.
fn is_error(word: &str) -> bool {
    word.ends_with("Error") && word.chars().all(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: &str = "\nCaused by:\n    SomeError\nStack backtrace:\n   0: <anyhow::Error>::msg\n   1: _start\n             at ./csu/libc-start.c:360:3";

    #[test]
    fn of_a_python_compiler_the_guests_own_words_are_left() {
        let said = |guests: &str| {
            format!(
                "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nAssertionError: {guests}{STACK}"
            )
        };
        let syntax =
            "  File \"/0/builder.py\", line 243\n    def broken(:\n               ^\nSyntaxError: invalid syntax";
        assert_eq!(reason(Language::Python, &said(syntax)), syntax.replace("/0/", ""));
        let import = "ModuleNotFoundError: No module named 'requests'";
        let told = reason(Language::Python, &said(import));
        assert!(told.starts_with(import) && told.contains("standard library") && !told.contains("anyhow"), "{told}");
        assert_eq!(reason(Language::Python, "killed"), "killed");
        assert_eq!(reason(Language::Python, "Stack backtrace:\n 0: x"), "Stack backtrace:\n 0: x");
    }

    #[test]
    fn of_a_javascript_compiler_the_frames_are_left_out() {
        let checked =
            "file:///acme/builder/builder.js:1\nexport function build( {{ }\n ^\nSyntaxError: Unexpected token";
        let thrown = "file:///t/node_modules/componentize.js:639\n    throw new Error(\n    ^\nError: failed to parse JS source\n    at parse (file:///t/x.js:1:2)\nNode.js v20.1.0";
        assert_eq!(reason(Language::Javascript, &format!("{checked}\n    at x\n{thrown}")), checked);
        assert_eq!(reason(Language::Javascript, thrown), "Error: failed to parse JS source");
        assert_eq!(reason(Language::Javascript, "killed"), "killed");
        assert_eq!(reason(Language::Rust, "error\n   at x"), "error\n   at x");
    }
}
