//! Records the compiler and the revision of the binary, for the header of `fec bench`. Nothing here can fail a build:
//! an unknown value is "unknown".

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Both files exist in a clone only. The first changes with the branch, the second with every commit and checkout.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = first_line("git", &["rev-parse", "--git-path", file])
            && std::path::Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    tell("FEC_COMPILER", first_line(&rustc, &["--version"]));
    tell("FEC_REVISION", first_line("git", &["rev-parse", "--short=12", "HEAD"]));
    tell("FEC_TARGET", std::env::var("TARGET").ok());
}

fn tell(name: &str, value: Option<String>) {
    println!("cargo:rustc-env={name}={}", value.unwrap_or_else(|| "unknown".into()));
}

/// The first line that a command prints, if it succeeds.
fn first_line(command: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(command).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
