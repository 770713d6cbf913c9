//! Any text is a filter, or is refused with a position in it; a filter is the same after print and parse.
#![no_main]

use shared::filter::Expr;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match text.parse::<Expr>() {
        Ok(filter) => {
            let printed = filter.to_string();
            assert_eq!(Expr::try_from(printed.clone()), Ok(filter), "{text:?} is printed as {printed:?}");
        }
        Err(fault) => {
            let positions = 1..=text.chars().count() + 1;
            assert!(positions.contains(&fault.position), "{text:?}: {fault}");
        }
    }
});
