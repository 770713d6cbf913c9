//! Programs from PyPI, installed once for all tests of a build.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::product::root;

/// Folder of the programs of the pinned packages in `tests/clients/<name>/requirements.txt`.
pub fn programs(name: &str) -> Result<PathBuf> {
    installed(name, &[root().join("tests/clients").join(name).join("requirements.txt")])
}

/// The same of these packages alone, where a package names others that the tests do not use.
pub fn listed_programs(name: &str) -> Result<PathBuf> {
    install(name, &[root().join("tests/clients").join(name).join("requirements.txt")], &["--no-deps"])
}

/// Folder of the programs of some files of requirements, in an environment of this name.
///
/// The environment stays beside the binaries of the build, and is made again when the requirements or Python change.
/// Tests change nothing in it.
pub fn installed(name: &str, requirements: &[PathBuf]) -> Result<PathBuf> {
    install(name, requirements, &[])
}

fn install(name: &str, requirements: &[PathBuf], options: &[&str]) -> Result<PathBuf> {
    let version = run("python3", ["--version"])?;
    let mut wanted = format!("{version}{}", options.concat());
    for file in requirements {
        wanted.push_str(&fs::read_to_string(file).with_context(|| file.display().to_string())?);
    }
    environment(name, &wanted, |folder| {
        // One pip installs for all: it takes longer to make than most of what it installs.
        let pip = environment("pip", &version, |folder| make(folder, &[]))?.join("python");
        make(folder, &["--without-pip"])?;
        let python = folder.join("bin/python");
        let mut arguments: Vec<&OsStr> =
            vec!["-m".as_ref(), "pip".as_ref(), "--python".as_ref(), python.as_ref()];
        // What is never imported need not be compiled.
        let how = ["install", "--quiet", "--no-compile", "--disable-pip-version-check"];
        arguments.extend(how.into_iter().chain(options.iter().copied()).map(OsStr::new));
        for file in requirements {
            arguments.extend([OsStr::new("-r"), file.as_os_str()]);
        }
        run(pip, arguments).map(drop)
    })
}

/// Folder of the programs of an environment, which is made unless it is there already, of just this.
fn environment(name: &str, wanted: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    // Tests lie in `deps`, one folder deeper than programs.
    let folder = own.ancestors().nth(2).context("no folder of the build")?.join("python").join(name);
    fs::create_dir_all(&folder)?;
    // Each test is a process: the first one makes it, the others wait.
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let (environment, record) = (folder.join("environment"), folder.join("made-of"));
    if !fs::read_to_string(&record).is_ok_and(|known| known == wanted) {
        fill(&environment)?;
        // Last: what was interrupted leaves no record.
        fs::write(&record, wanted)?;
    }
    Ok(environment.join("bin"))
}

/// Makes an empty environment.
fn make(folder: &Path, options: &[&str]) -> Result<()> {
    let mut arguments: Vec<&OsStr> = vec!["-m".as_ref(), "venv".as_ref(), "--clear".as_ref()];
    arguments.extend(options.iter().map(OsStr::new));
    arguments.push(folder.as_ref());
    run("python3", arguments).map(drop)
}

fn run(program: impl AsRef<Path>, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
    let mut command = Command::new(program.as_ref());
    command.args(arguments);
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
