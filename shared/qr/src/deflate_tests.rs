use proptest::prelude::*;

use super::*;

fn inflate(stream: &[u8]) -> Vec<u8> {
    // The image crate's own inflater checks codes, references and the Adler-32 sum.
    fdeflate::decompress_to_vec(stream).expect("a valid stream")
}

#[test]
fn lengths_and_distances_are_those_of_the_standard() {
    for (length, expected) in [
        (3, (257, 0, 0)),
        (10, (264, 0, 0)),
        (11, (265, 1, 0)),
        (18, (268, 1, 1)),
        (19, (269, 2, 0)),
        (130, (280, 4, 15)),
        (131, (281, 5, 0)),
        (257, (284, 5, 30)),
        (258, (285, 0, 0)),
    ] {
        assert_eq!(length_code(length), expected, "length {length}");
    }
    for (distance, expected) in [
        (1, (0, 0, 0)),
        (4, (3, 0, 0)),
        (5, (4, 1, 0)),
        (8, (5, 1, 1)),
        (33, (10, 4, 0)),
        (39, (10, 4, 6)),
        (1251, (20, 9, 226)),
        (32_768, (29, 13, 8191)),
    ] {
        assert_eq!(distance_code(distance), expected, "distance {distance}");
    }
}

#[test]
fn codes_never_exceed_the_longest_length() {
    // Fibonacci weights make the deepest tree.
    let mut weights = vec![1_u32, 1];
    while weights.len() < 40 {
        weights.push(weights[weights.len() - 1] + weights[weights.len() - 2]);
    }
    for longest in [7, 15] {
        let lengths = code_lengths(&weights, longest);
        assert!(lengths.iter().all(|&length| (1..=longest).contains(&length)));
        let space: u32 = lengths.iter().map(|&length| 1 << (longest - length)).sum();
        assert_eq!(space, 1 << longest, "a complete code");
    }
}

proptest! {
    #[test]
    fn whatever_rows_go_in_come_out(
        rows in (4_usize..120).prop_flat_map(|length| prop::collection::vec(
            (prop::collection::vec(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()], length), 1_u32..20),
            1..8,
        ))
    ) {
        let mut zlib = Zlib::new(rows[0].0.len());
        let mut plain = Vec::new();
        for (row, times) in &rows {
            zlib.rows(row, *times);
            plain.extend(row.repeat(*times as usize));
        }
        prop_assert_eq!(inflate(&zlib.finish()), plain);
    }
}
