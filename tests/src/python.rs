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
///
/// # Errors
/// They cannot be installed.
pub fn programs(name: &str) -> Result<PathBuf> {
    installed(name, &[root().join("tests/clients").join(name).join("requirements.txt")])
}

/// Folder of the programs of some files of requirements, in an environment of this name.
///
/// The environment stays beside the binaries of the build, and is made again when the requirements or Python change.
/// Tests change nothing in it.
///
/// # Errors
/// They cannot be installed.
pub fn installed(name: &str, requirements: &[PathBuf]) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    // Tests lie in `deps`, one folder deeper than programs.
    let folder = own.ancestors().nth(2).context("no folder of the build")?.join("python").join(name);
    fs::create_dir_all(&folder)?;
    // Each test is a process: the first one installs, the others wait for it.
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let mut wanted = run("python3", ["--version"])?;
    for file in requirements {
        wanted.push_str(&fs::read_to_string(file).with_context(|| file.display().to_string())?);
    }
    let (environment, record) = (folder.join("environment"), folder.join("installed"));
    if fs::read_to_string(&record).is_ok_and(|known| known == wanted) {
        return Ok(environment.join("bin"));
    }
    run("python3", [OsStr::new("-m"), OsStr::new("venv"), OsStr::new("--clear"), environment.as_os_str()])?;
    let mut arguments: Vec<&OsStr> =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"].map(OsStr::new).to_vec();
    for file in requirements {
        arguments.extend([OsStr::new("-r"), file.as_os_str()]);
    }
    run(environment.join("bin/python"), arguments)?;
    // Last: an installation that was interrupted leaves no record.
    fs::write(&record, wanted)?;
    Ok(environment.join("bin"))
}

fn run(program: impl AsRef<Path>, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
    let mut command = Command::new(program.as_ref());
    command.args(arguments);
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
