//! PDF: pages of rectangles in DeviceGray, and the frame of a document.
//!
//! Without fonts, dates, an id or a producer, so that equal orders give equal bytes. A document is written as it comes:
//! its pages have numbers that follow from how many there are.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use super::{Read, operators, points};
use crate::place::{Group, Rect};

/// Children of a node of the tree of pages.
const FAN_OUT: u64 = 64;
/// Entries of the table of objects have ten digits.
const MAX_BYTES: u64 = 9_999_999_999;

/// The operators of a page of `height`; lengths in nanometres.
pub(crate) fn content(height: u64, groups: &[Group]) -> Vec<u8> {
    let mut content =
        String::with_capacity(100 + groups.iter().map(|group| group.rects.len() * 13).sum::<usize>());
    content.push_str("0 g\n");
    for Group { scale, x, y, rects } in groups {
        let (x, y, scale) = (points(*x), points(height.saturating_sub(*y)), points(*scale));
        // Units from the upper left corner of the group. Writing to a String cannot fail.
        let _ = writeln!(content, "q {scale} 0 0 -{scale} {x} {y} cm");
        for Rect { x, y, width, height } in rects {
            let _ = writeln!(content, "{x} {y} {width} {height} re");
        }
        content.push_str("f Q\n");
    }
    content.into_bytes()
}

/// The rectangles of a page of `content`; `height` as it was given there.
pub(crate) fn read(content: &[u8], height: u64) -> Option<Vec<Read>> {
    operators::read(content, height as f64)
}

/// A document of one page, its content not packed.
pub(crate) fn single(width: u64, height: u64, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = Vec::with_capacity(content.len() + 700);
    let mut document = Document::begin(&mut file, 1)?;
    document.page(&mut file, width, height)?;
    document.content(&mut file, content.len() as u64, "", &mut &content[..])?;
    document.finish(&mut file)?;
    Ok(file)
}

/// The content of the first page of a document of `single`.
pub(crate) fn single_content(file: &[u8]) -> Option<&[u8]> {
    let find = |what: &[u8], from: usize| {
        file.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| from + at)
    };
    let begin = find(BEGIN_STREAM, 0)? + BEGIN_STREAM.len();
    file.get(begin..find(END_STREAM, begin)?)
}

const BEGIN_STREAM: &[u8] = b">>stream\n";
const END_STREAM: &[u8] = b"\nendstream\nendobj\n";

/// A document that is being written. Objects: 1 the catalog, then each page with its content, then the tree of pages.
#[derive(Debug)]
pub(crate) struct Document {
    pages: u64,
    /// Where the objects from number 2 on begin.
    offsets: Vec<u64>,
    written: u64,
}

impl Document {
    /// Begins a document of so many pages.
    pub(crate) fn begin(out: &mut impl Write, pages: u64) -> io::Result<Self> {
        let mut document = Self { pages, offsets: Vec::new(), written: 0 };
        document.put(out, b"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n")?;
        Ok(document)
    }

    /// Writes the next page; `content` must follow.
    pub(crate) fn page(&mut self, out: &mut impl Write, width: u64, height: u64) -> io::Result<()> {
        let number = self.begin_object();
        let page = (number - 2) / 2;
        let node = self.first_node() + page / FAN_OUT;
        let (width, height) = (points(width), points(height));
        let contents = number + 1;
        let object = format!(
            "{number} 0 obj\n<</Type/Page/Parent {node} 0 R/MediaBox[0 0 {width} {height}]/Resources<<>>\
             /Contents {contents} 0 R>>\nendobj\n"
        );
        self.put(out, object.as_bytes())
    }

    /// Writes the content of the page: `length` bytes of `body`, with further entries of its dictionary.
    pub(crate) fn content(
        &mut self,
        out: &mut impl Write,
        length: u64,
        entries: &str,
        body: &mut impl io::Read,
    ) -> io::Result<()> {
        let number = self.begin_object();
        self.put(out, format!("{number} 0 obj\n<</Length {length}{entries}").as_bytes())?;
        self.put(out, BEGIN_STREAM)?;
        let copied = io::copy(&mut io::Read::take(body, length), out)?;
        if copied != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.written += length;
        self.put(out, END_STREAM)
    }

    /// Writes the tree of pages, the catalog and the table of objects. Gives the bytes of the document.
    pub(crate) fn finish(mut self, out: &mut impl Write) -> io::Result<u64> {
        if self.next_number() != self.first_node() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a PDF has not the pages that it began with",
            ));
        }
        let root = self.tree(out)?;
        let catalog = self.written;
        self.put(out, format!("1 0 obj\n<</Type/Catalog/Pages {root} 0 R>>\nendobj\n").as_bytes())?;
        let table = self.written;
        if table > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a PDF has at most 10 GB"));
        }
        let size = self.offsets.len() + 2;
        self.put(out, format!("xref\n0 {size}\n0000000000 65535 f \n{catalog:010} 00000 n \n").as_bytes())?;
        for offset in std::mem::take(&mut self.offsets) {
            self.put(out, format!("{offset:010} 00000 n \n").as_bytes())?;
        }
        let trailer = format!("trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n");
        self.put(out, trailer.as_bytes())?;
        Ok(self.written)
    }

    /// Writes the nodes from the lowest level up; gives the number of the root.
    fn tree(&mut self, out: &mut impl Write) -> io::Result<u64> {
        // The objects of the level below, and how many pages each has but the last.
        let (mut first, mut step, mut count, mut pages_each) = (2, 2, self.pages, 1);
        loop {
            let nodes = count.div_ceil(FAN_OUT).max(1);
            let first_node = self.next_number();
            let parents = first_node + nodes;
            for node in 0..nodes {
                let number = self.begin_object();
                let mut object = format!("{number} 0 obj\n<</Type/Pages");
                if nodes > 1 {
                    // Writing to a String cannot fail.
                    let _ = write!(object, "/Parent {} 0 R", parents + node / FAN_OUT);
                }
                let children = node * FAN_OUT..((node + 1) * FAN_OUT).min(count);
                let each = pages_each * FAN_OUT;
                let leaves = ((node + 1) * each).min(self.pages) - (node * each).min(self.pages);
                let _ = write!(object, "/Count {leaves}/Kids[");
                for child in children {
                    let _ = write!(object, "{} 0 R ", first + child * step);
                }
                object.push_str("]>>\nendobj\n");
                self.put(out, object.as_bytes())?;
            }
            if nodes == 1 {
                return Ok(first_node);
            }
            (first, step, count, pages_each) = (first_node, 1, nodes, pages_each * FAN_OUT);
        }
    }

    /// The number of the first node of the tree: behind the pages and their contents.
    fn first_node(&self) -> u64 {
        2 + 2 * self.pages
    }

    fn next_number(&self) -> u64 {
        self.offsets.len() as u64 + 2
    }

    fn begin_object(&mut self) -> u64 {
        let number = self.next_number();
        self.offsets.push(self.written);
        number
    }

    fn put(&mut self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages below an object, each of whose parents must be the node that names it.
    fn pages(file: &str, number: u64, parent: Option<u64>) -> u64 {
        let (_, object) = file.split_once(&format!("\n{number} 0 obj\n")).expect("the object is there");
        let (object, _) = object.split_once("\nendobj").expect("it ends");
        let named = object.split_once("/Parent ").map(|(_, rest)| rest.split(' ').next());
        let named = named.map(|number| number.and_then(|number| number.parse().ok()).expect("a number"));
        assert_eq!(named, parent, "{object}");
        let Some((_, kids)) = object.split_once("/Kids[") else { return 1 };
        let kids = kids.split(" 0 R").filter_map(|kid| kid.trim().parse().ok());
        let kids: Vec<u64> = kids.collect();
        assert!(kids.len() <= 64, "{object}");
        let sum = kids.into_iter().map(|kid| pages(file, kid, Some(number))).sum();
        assert!(object.contains(&format!("/Count {sum}/")), "{sum}: {object}");
        sum
    }

    #[test]
    fn the_tree_of_pages_is_balanced_and_whole() {
        for count in [1, 2, 64, 65, 128, 4_097] {
            let mut file = Vec::new();
            let mut document = Document::begin(&mut file, count).expect("a vector takes all");
            for _ in 0..count {
                document.page(&mut file, 25_400_000, 12_700_000).expect("a vector takes all");
                document.content(&mut file, 3, "", &mut &b"0 g"[..]).expect("a vector takes all");
            }
            let length = document.finish(&mut file).expect("a vector takes all");
            assert_eq!(length, file.len() as u64);
            let text = String::from_utf8_lossy(&file);
            let root = text.split("/Catalog/Pages ").nth(1).and_then(|rest| rest.split(' ').next());
            let root = root.and_then(|root| root.parse().ok()).expect("a root");
            assert_eq!(pages(&text, root, None), count);
            assert!(text.contains("/MediaBox[0 0 72 36]"));
        }
    }

    #[test]
    fn every_entry_of_the_table_is_where_its_object_begins() {
        let file = single(10_000_000, 20_000_000, b"0 g\n").expect("a vector takes all");
        let begin = |offset: usize| String::from_utf8_lossy(&file[offset..]).into_owned();
        let text = begin(0);
        let table = file.windows(6).position(|window| window == b"\nxref\n").expect("a table") + 1;
        assert!(begin(0).contains(&format!("startxref\n{table}\n")), "{text}");
        let entries = begin(table);
        let entries = entries.lines().skip(3).take_while(|line| line.ends_with(" n "));
        let mut count = 0;
        for (entry, number) in entries.zip(1..) {
            let offset: usize = entry[..10].parse().expect("ten digits");
            assert!(begin(offset).starts_with(&format!("{number} 0 obj\n")), "{entry}");
            count += 1;
        }
        assert_eq!(count, 4, "catalog, page, content, tree");
        assert_eq!(single_content(&file), Some(&b"0 g\n"[..]));
    }
}
