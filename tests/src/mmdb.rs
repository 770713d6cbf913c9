//! Writes small databases in MaxMind's format (MaxMind DB file format 2.0), for tests of geography.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::{Value, json};

/// Bits of an IPv4 address in a tree of IPv6: it lies in `::/96`.
const V4_BITS: u8 = 96;

#[derive(Clone, Copy)]
enum Slot {
    Nothing,
    Node(usize),
    Data(usize),
}

/// A database of networks, such as `203.0.113.0/24`, with a record each.
///
/// `ip_version` is 4, or 6 with the IPv4 networks in `::/96`. Networks must not contain each other, texts and
/// objects have fewer than 29 bytes and members, names of members too; whole numbers are below 65,536 and lie there in 16
/// bits, whatever width a real database has.
///
/// # Panics
/// A network or record has another form.
#[must_use]
#[expect(clippy::expect_used, clippy::panic, reason = "a fixture that is wrong fails its test")]
pub fn database(ip_version: u8, networks: &[(&str, Value)]) -> Vec<u8> {
    let (mut nodes, mut data) = (vec![[Slot::Nothing; 2]], Vec::new());
    for (network, record) in networks {
        let (address, length) = network.split_once('/').expect("a network has a length");
        let length: u8 = length.parse().expect("a length is a number");
        let (bits, length) = match (address.parse().expect("an address"), ip_version) {
            (IpAddr::V4(v4), 4) => (u128::from(v4.to_bits()) << V4_BITS, length),
            (IpAddr::V4(v4), _) => (u128::from(v4.to_bits()), length + V4_BITS),
            (IpAddr::V6(v6), 6) => (Ipv6Addr::to_bits(v6), length),
            (IpAddr::V6(v6), _) => panic!("{v6} in a tree of IPv4"),
        };
        let at = data.len();
        encode(&mut data, "", record);
        let mut node = 0;
        for depth in 0..length {
            let side = usize::from(bits >> (127 - depth) & 1 == 1);
            if depth + 1 == length {
                nodes[node][side] = Slot::Data(at);
            } else if let Slot::Node(next) = nodes[node][side] {
                node = next;
            } else {
                nodes.push([Slot::Nothing; 2]);
                nodes[node][side] = Slot::Node(nodes.len() - 1);
                node = nodes.len() - 1;
            }
        }
    }
    let mut file = Vec::new();
    for slot in nodes.iter().flatten() {
        let value = match *slot {
            Slot::Nothing => nodes.len(),
            Slot::Node(index) => index,
            Slot::Data(at) => nodes.len() + 16 + at,
        };
        let bytes = u32::try_from(value).expect("a small tree").to_be_bytes();
        file.extend(&bytes[1..]);
    }
    file.extend([0; 16]);
    file.extend(data);
    file.extend(b"\xAB\xCD\xEFMaxMind.com");
    let metadata = json!({
        "binary_format_major_version": 2, "binary_format_minor_version": 0, "build_epoch": 1,
        "database_type": "Test-City", "description": {"en": "test"}, "ip_version": ip_version,
        "languages": ["en"], "node_count": nodes.len(), "record_size": 24,
    });
    encode(&mut file, "", &metadata);
    file
}

/// Appends a value in the format's data encoding.
#[expect(clippy::expect_used, clippy::panic, reason = "a fixture that is wrong fails its test")]
fn encode(out: &mut Vec<u8>, name: &str, value: &Value) {
    let short = |length: usize| u8::try_from(length).ok().filter(|length| *length < 29).expect("a short one");
    match value {
        Value::Object(members) => {
            out.push(7 << 5 | short(members.len()));
            for (name, member) in members {
                encode(out, "", &json!(name));
                encode(out, name, member);
            }
        }
        Value::Array(items) => {
            out.extend([short(items.len()), 11 - 7]);
            items.iter().for_each(|item| encode(out, "", item));
        }
        Value::String(text) => {
            out.push(2 << 5 | short(text.len()));
            out.extend(text.as_bytes());
        }
        // The reader asks for each number in the width that the format gives it.
        Value::Number(number) if name == "build_epoch" => {
            out.extend([8, 9 - 7]);
            out.extend(number.as_u64().expect("a moment").to_be_bytes());
        }
        Value::Number(number) if number.is_u64() => {
            let small =
                number.as_u64().and_then(|number| u16::try_from(number).ok()).expect("a small number");
            if name == "node_count" {
                out.push(6 << 5 | 4);
                out.extend(u32::from(small).to_be_bytes());
            } else {
                out.push(5 << 5 | 2);
                out.extend(small.to_be_bytes());
            }
        }
        Value::Number(number) => {
            out.push(3 << 5 | 8);
            out.extend(number.as_f64().expect("a number").to_be_bytes());
        }
        Value::Bool(_) | Value::Null => panic!("not needed"),
    }
}
