//! The whole input space of a verdict, for its tests: enumerated in a fixed order, and printed as a decision tree.
//!
//! A dimension is one fact with all its values. `for_all` visits every combination; `tree` prints one line a decision and
//! leaves out every fact that makes no difference. `otherwise` stands for all values that no line above it names.

use std::collections::HashMap;
use std::fmt::{Debug, Display, Write as _};
use std::path::PathBuf;

/// Sets a fact to the value with this index.
type Set<F> = Box<dyn Fn(&mut F, usize)>;

/// One fact and its values.
pub struct Dimension<F> {
    name: &'static str,
    labels: Vec<String>,
    set: Set<F>,
}

/// Declares one fact.
pub fn dimension<F, T: Debug + Copy + 'static>(
    name: &'static str,
    values: &[T],
    set: impl Fn(&mut F, T) + 'static,
) -> Dimension<F> {
    let labels = values.iter().map(|value| format!("{value:?}").replace(' ', "")).collect();
    let values = values.to_vec();
    Dimension { name, labels, set: Box::new(move |facts, index| set(facts, values[index])) }
}

/// How many combinations there are.
pub fn size<F>(dimensions: &[Dimension<F>]) -> usize {
    dimensions.iter().map(|dimension| dimension.labels.len()).product()
}

/// Visits every combination; every fact of `facts` is overwritten.
pub fn for_all<F>(dimensions: &[Dimension<F>], facts: &mut F, visit: &mut impl FnMut(&F)) {
    match dimensions.split_first() {
        None => visit(facts),
        Some((dimension, rest)) => {
            for index in 0..dimension.labels.len() {
                (dimension.set)(facts, index);
                for_all(rest, facts, visit);
            }
        }
    }
}

/// The decision tree of `decide`, with subtrees of equal answers collapsed.
pub fn tree<F, A: Copy + PartialEq + Display>(
    dimensions: &[Dimension<F>],
    mut facts: F,
    decide: impl Fn(&F) -> A,
) -> String {
    let mut forest = Forest { answers: Vec::new(), nodes: Vec::new(), known: HashMap::new(), latest: None };
    let root = forest.grow(dimensions, 0, &mut facts, &decide);
    let mut printed = String::new();
    writeln!(printed, "# {} combinations.", size(dimensions)).unwrap();
    for dimension in dimensions {
        writeln!(printed, "# {}: {}", dimension.name, dimension.labels.join(", ")).unwrap();
    }
    forest.print(dimensions, root, 0, &mut printed);
    printed
}

/// Compares with the golden file; `bless` writes it instead.
pub fn golden(file: &str, printed: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    #[expect(clippy::disallowed_methods, reason = "a test's own switch: WAYBILL_BLESS=1 writes the golden files anew")]
    if std::env::var_os("WAYBILL_BLESS").is_some() {
        std::fs::write(&path, printed).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((number, (line, was))) =
        printed.lines().zip(expected.lines()).enumerate().find(|(_, (line, was))| line != was)
    {
        panic!(
            "{file}:{}: was `{was}`, is `{line}`; if that is meant, run with WAYBILL_BLESS=1 and review",
            number + 1
        );
    }
    assert_eq!(printed.lines().count(), expected.lines().count(), "{file}: if that is meant, run with WAYBILL_BLESS=1");
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Node {
    /// An answer, by its index.
    Leaf(usize),
    /// The dimension's index, and a node for each of its values.
    Split(usize, Vec<usize>),
}

/// Equal subtrees are one node, so that they are recognised by their number.
struct Forest<A> {
    answers: Vec<A>,
    nodes: Vec<Node>,
    known: HashMap<Node, usize>,
    /// Neighbours mostly have the same answer: the latest one and its node.
    latest: Option<(A, usize)>,
}

impl<A: Copy + PartialEq + Display> Forest<A> {
    fn grow<F>(
        &mut self,
        dimensions: &[Dimension<F>],
        depth: usize,
        facts: &mut F,
        decide: &impl Fn(&F) -> A,
    ) -> usize {
        let Some(dimension) = dimensions.get(depth) else {
            return self.leaf(decide(facts));
        };
        let count = dimension.labels.len();
        (dimension.set)(facts, 0);
        let first = self.grow(dimensions, depth + 1, facts, decide);
        // Children are collected only from the first one that differs.
        let mut children = Vec::new();
        for index in 1..count {
            (dimension.set)(facts, index);
            let child = self.grow(dimensions, depth + 1, facts, decide);
            if children.is_empty() && child != first {
                children = vec![first; index];
            }
            if !children.is_empty() {
                children.push(child);
            }
        }
        if children.is_empty() { first } else { self.plant(Node::Split(depth, children)) }
    }

    fn leaf(&mut self, answer: A) -> usize {
        if let Some((latest, node)) = self.latest
            && latest == answer
        {
            return node;
        }
        let index = self.answers.iter().position(|known| *known == answer).unwrap_or_else(|| {
            self.answers.push(answer);
            self.answers.len() - 1
        });
        let node = self.plant(Node::Leaf(index));
        self.latest = Some((answer, node));
        node
    }

    fn plant(&mut self, node: Node) -> usize {
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        self.nodes.push(node.clone());
        self.known.insert(node, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// One line a decision, the answer behind the last one; the widest group of a fact's values comes last.
    fn print<F>(&self, dimensions: &[Dimension<F>], node: usize, depth: usize, printed: &mut String) {
        let Node::Split(dimension, children) = &self.nodes[node] else { return };
        let dimension = &dimensions[*dimension];
        let mut groups: Vec<(usize, Vec<&str>)> = Vec::new();
        for (child, label) in children.iter().zip(&dimension.labels) {
            match groups.iter_mut().find(|(known, _)| known == child) {
                Some((_, labels)) => labels.push(label),
                None => groups.push((*child, vec![label])),
            }
        }
        groups.sort_by_key(|(_, labels)| labels.len());
        for (position, (child, labels)) in groups.iter().enumerate() {
            let last = position + 1 == groups.len();
            let values = if last && labels.len() > 2 { "otherwise".to_owned() } else { labels.join("|") };
            write!(printed, "{:indent$}{}={values}", "", dimension.name, indent = depth * 2).unwrap();
            match &self.nodes[*child] {
                Node::Leaf(answer) => writeln!(printed, " → {}", self.answers[*answer]).unwrap(),
                Node::Split(..) => {
                    printed.push('\n');
                    self.print(dimensions, *child, depth + 1, printed);
                }
            }
        }
    }
}
