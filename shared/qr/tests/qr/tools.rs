//! Decoders and checkers outside this project: `rqrr`, and programs from Debian.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Reads every code of a PNG by `rqrr`.
pub(crate) fn rqrr(png: &[u8], what: &str) -> Vec<String> {
    let image = image::load_from_memory(png).unwrap_or_else(|error| panic!("{what}: {error}")).to_luma8();
    let (width, height) = (image.width() as usize, image.height() as usize);
    let luma = |x, y| image.get_pixel(x as u32, y as u32).0[0];
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, luma);
    let read = |grid: rqrr::Grid<_>| grid.decode().unwrap_or_else(|error| panic!("{what}: {error}")).1;
    image.detect_grids().into_iter().map(read).collect()
}

/// Reads files by `zbarimg`, one process for all; each must hold one code.
pub(crate) fn zbarimg(files: &[PathBuf]) -> Vec<String> {
    let mut command = Command::new("zbarimg");
    command.args(["--quiet", "--raw", "-Sdisable", "-Sqrcode.enable"]).args(files);
    run(&mut command).lines().map(str::to_owned).collect()
}

/// An SVG as PNG at its natural size, times `zoom`.
pub(crate) fn rsvg(svg: &[u8], zoom: &str) -> Vec<u8> {
    let mut command = Command::new("rsvg-convert");
    pipe(command.args(["--format", "png", "--zoom", zoom]), svg)
}

/// The first page of a PDF as PNG.
pub(crate) fn pdftoppm(pdf: &[u8], dpi: &str) -> Vec<u8> {
    let mut command = Command::new("pdftoppm");
    pipe(command.args(["-png", "-singlefile", "-r", dpi, "-"]), pdf)
}

/// Checks the structure of PNG files.
pub(crate) fn pngcheck(files: &[PathBuf]) {
    run(Command::new("pngcheck").arg("-q").args(files));
}

/// Checks the structure of a PDF; warnings fail as well.
pub(crate) fn qpdf(file: &Path) {
    run(Command::new("qpdf").arg("--check").arg(file));
}

/// A file in a fresh folder for one test.
pub(crate) fn save(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name.replace(['&', '='], "_"));
    std::fs::write(&path, bytes).expect("the folder is writable");
    path
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    out
}

fn pipe(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // Images of a few kilobytes fit the pipe, so that writing before reading cannot block.
    child.stdin.take().expect("piped").write_all(input).expect("the tool reads");
    let output = child.wait_with_output().expect("the tool ends");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    output.stdout
}
