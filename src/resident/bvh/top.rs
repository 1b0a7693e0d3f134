//! The wide nodes above the parts that single threads build, and where the parts' trees go.

use super::Corners;
use super::collapse::{Branch, Children, Part, empty_node, set_box};
use crate::resident::layout::NodeRecord;

/// The binary tree that the surface-area heuristic builds: large nodes above parts of single threads.
#[derive(Debug)]
pub(super) enum Tree {
    Large { branch: Branch, children: Box<[Tree; 2]> },
    Part(Part),
}

impl Tree {
    pub(super) fn branch(&self) -> &Branch {
        match self {
            Self::Large { branch, .. } => branch,
            Self::Part(part) => &part.branches[part.root() as usize],
        }
    }
}

/// The wide nodes above the parts.
#[derive(Debug, Default)]
pub(super) struct Top<'a> {
    /// Their number.
    pub(super) nodes: usize,
    /// Parts, each with the roots of the trees that it becomes.
    pub(super) forests: Vec<(&'a Part, Children)>,
}

/// A wide node above the parts.
#[derive(Debug)]
pub(super) struct TopNode {
    at: usize,
    children: Vec<TopChild>,
}

#[derive(Debug)]
enum TopChild {
    Node(Corners, TopNode),
    /// All trees of a forest.
    Forest(usize),
}

impl<'a> Top<'a> {
    /// Numbers the wide nodes of a tree and lists its parts.
    pub(super) fn node(&mut self, tree: &'a Tree) -> TopNode {
        let mut node = TopNode {
            at: self.nodes,
            children: Vec::new(),
        };
        self.nodes += 1;
        match tree {
            Tree::Large { branch, children } => {
                let [l, r] = branch.own_shares();
                self.forest(&children[0], l, &mut node);
                self.forest(&children[1], r, &mut node);
            }
            Tree::Part(part) => {
                let mut trees = part.children(part.root());
                if trees.is_empty() {
                    trees.push(part.root());
                }
                node.children.push(TopChild::Forest(self.forests.len()));
                self.forests.push((part, trees));
            }
        }
        node
    }

    fn forest(&mut self, tree: &'a Tree, trees: usize, out: &mut TopNode) {
        match tree {
            Tree::Part(part) => {
                let mut roots = Children::new();
                part.forest(part.root(), trees, &mut roots);
                out.children.push(TopChild::Forest(self.forests.len()));
                self.forests.push((part, roots));
            }
            Tree::Large { branch, children } => match branch.shares(trees) {
                Some([l, r]) => {
                    self.forest(&children[0], l, out);
                    self.forest(&children[1], r, out);
                }
                None => {
                    let node = self.node(tree);
                    out.children.push(TopChild::Node(branch.bounds.corners(), node));
                }
            },
        }
    }
}

impl TopNode {
    /// Writes the node and those below it; `roots` are the trees of all forests.
    pub(super) fn write(&self, nodes: &mut [NodeRecord], roots: &[Vec<(Corners, u32)>]) {
        let mut record = empty_node();
        let mut next = 0;
        let mut add = |bounds, child| {
            set_box(&mut record, next, bounds);
            record.children[next] = child;
            next += 1;
        };
        for child in &self.children {
            match child {
                TopChild::Node(bounds, node) => {
                    node.write(nodes, roots);
                    add(*bounds, node.at as u32);
                }
                TopChild::Forest(index) => roots[*index].iter().for_each(|&(b, c)| add(b, c)),
            }
        }
        nodes[self.at] = record;
    }
}
