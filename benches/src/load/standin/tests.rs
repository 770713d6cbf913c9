use super::*;

#[test]
fn pages_hold_each_link_once() {
    let links = Links::generate(2_345, 3);
    let standin = StandIn::start(&links).unwrap();
    let (mut after, mut found) = (String::new(), Vec::new());
    loop {
        let page = standin.control.page(&after).unwrap();
        found.extend(page.links.iter().map(|(folded, ..)| folded.clone()));
        if !page.more {
            break;
        }
        after = page.links.last().unwrap().0.to_string();
    }
    let all: Vec<Arc<str>> = (0..links.count()).map(|index| links.key(index).folded).collect();
    assert_eq!(found, all);
    for index in [0, 1, 2_344] {
        let known = |id: &[u8]| standin.control.lookup(&crate::links::text(id)).unwrap().value.is_some();
        assert!(known(&links.known(index)) && !known(&links.unknown(index)));
    }
}
