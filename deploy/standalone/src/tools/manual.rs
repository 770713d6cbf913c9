//! `waymark completion` and `waymark man`: completion scripts and manual pages, from the command line itself.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::ValueEnum;
use clap_complete::Shell;

use crate::failure::Failure;

/// A shell that completes commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

/// Arguments of `waymark completion`.
#[derive(Debug, clap::Args)]
pub struct Completion {
    /// The shell
    shell: Kind,
}

/// Arguments of `waymark man`.
#[derive(Debug, clap::Args)]
pub struct Man {
    /// Write a page for each command to this folder, waymark-import.1 and so on [default: the first page to stdout]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the completion script of a shell.
///
/// # Errors
/// It cannot be written.
pub fn completion(args: &Completion, mut command: clap::Command) -> Result<ExitCode, Failure> {
    let shell = match args.shell {
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "waymark", &mut script);
    print(&script)
}

/// Prints the manual page of `waymark`, or writes those of all commands.
///
/// # Errors
/// A page cannot be written.
pub fn man(args: &Man, command: clap::Command) -> Result<ExitCode, Failure> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| Failure::failed("the page", error))?;
        return print(&page);
    };
    let failed = |error: io::Error| Failure::failed(&folder.display().to_string(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command, folder).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        // Whoever read has enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed("stdout", error)),
        Err(_) | Ok(()) => Ok(ExitCode::SUCCESS),
    }
}
