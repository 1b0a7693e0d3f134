//! The mutations of one source file.

use proc_macro2::Span;
use quote_free::text;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ExprLit, Lit, ReturnType, Stmt, Type, UnOp};

/// How a mutation is written into the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An expression that another takes the place of.
    Replace,
    /// A statement that is left out.
    Omit,
    /// A function that returns at once.
    Return,
}

/// One mutation: what stands in a range of bytes of the file, and what it becomes.
#[derive(Debug, Clone)]
pub struct Mutation {
    pub form: Form,
    /// Bytes of the expression or statement; of [`Form::Return`] the empty range behind the body's opening brace.
    pub start: usize,
    pub end: usize,
    /// From 1.
    pub line: usize,
    /// Source of the replacement.
    pub with: String,
    /// What the mutation changes, in words.
    pub what: String,
}

/// All mutations of a file, outer expressions before what they contain.
///
/// Left out are tests, macros, patterns and what the compiler evaluates: constants, lengths of arrays, `const fn`.
/// Constants are mutated where they are used.
pub fn find(source: &str) -> syn::Result<Vec<Mutation>> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder {
        source,
        found: Vec::new(),
    };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder<'a> {
    source: &'a str,
    found: Vec<Mutation>,
}

impl Finder<'_> {
    fn add(&mut self, form: Form, span: Span, with: String, what: String) {
        let range = span.byte_range();
        self.found.push(Mutation {
            form,
            start: range.start,
            end: range.end,
            line: span.start().line,
            with,
            what,
        });
    }

    fn replace(&mut self, node: &impl Spanned, with: String) {
        let what = format!("`{}` becomes `{}`", short(text(self.source, node)), short(&with));
        self.add(Form::Replace, node.span(), with, what);
    }

    /// Adds a mutation for each result that can be made up: the function returns it at once.
    fn body(&mut self, name: &str, output: &ReturnType, block: &Block) {
        let results: &[&str] = match output {
            ReturnType::Default => &["()"],
            ReturnType::Type(_, ty) => made_up(ty),
        };
        let open = block.brace_token.span.open();
        let at = open.byte_range().end;
        for result in results {
            self.found.push(Mutation {
                form: Form::Return,
                start: at,
                end: at,
                line: open.start().line,
                with: (*result).to_owned(),
                what: format!("`{name}` returns `{result}`"),
            });
        }
    }

    fn binary(&mut self, e: &syn::ExprBinary) {
        let (left, right) = (text(self.source, &e.left), text(self.source, &e.right));
        for op in other_operators(&e.op) {
            self.replace(e, format!("{left} {op} {right}"));
        }
    }

    /// Adds the negation of a condition that is not itself an operator.
    fn condition(&mut self, e: &Expr) {
        if !matches!(e, Expr::Let(_) | Expr::Binary(_) | Expr::Unary(_)) {
            self.replace(e, format!("!({})", text(self.source, e)));
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if item.sig.constness.is_none() && !is_test(&item.attrs) {
            self.body(&item.sig.ident.to_string(), &item.sig.output, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if item.sig.constness.is_none() && !is_test(&item.attrs) {
            self.body(&item.sig.ident.to_string(), &item.sig.output, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_item_const(&mut self, _: &'a syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'a syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'a syn::ImplItemConst) {}
    fn visit_item_enum(&mut self, _: &'a syn::ItemEnum) {}
    fn visit_item_macro(&mut self, _: &'a syn::ItemMacro) {}
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
    fn visit_pat(&mut self, _: &'a syn::Pat) {}
    fn visit_type(&mut self, _: &'a Type) {}
    fn visit_generic_argument(&mut self, _: &'a syn::GenericArgument) {}
    fn visit_expr_const(&mut self, _: &'a syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, e: &'a syn::ExprRepeat) {
        self.visit_expr(&e.expr);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if let Some(init) = &local.init {
            self.visit_local_init(init);
        }
    }

    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::Expr(e, Some(_)) = stmt
            && matches!(
                e,
                Expr::Assign(_) | Expr::Binary(_) | Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_)
            )
        {
            let what = format!("`{}` is left out", short(text(self.source, stmt)));
            self.add(Form::Omit, stmt.span(), String::new(), what);
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
            self.visit_expr(guard);
        }
        self.visit_expr(&arm.body);
    }

    fn visit_expr(&mut self, e: &'a Expr) {
        match e {
            Expr::Binary(b) => self.binary(b),
            Expr::Unary(u) if matches!(u.op, UnOp::Not(_) | UnOp::Neg(_)) => {
                self.replace(u, text(self.source, &u.expr).to_owned());
            }
            Expr::Lit(ExprLit { lit, .. }) => {
                for with in other_literals(lit) {
                    self.replace(e, with);
                }
            }
            Expr::Path(p) if is_constant(&p.path) => {
                let (name, mut others) = (text(self.source, e), vec!["+ 1", "* 2.0"]);
                // A multiple of zero or infinity is the same again.
                if name.ends_with("::ZERO") {
                    others = vec!["+ 1.0"];
                } else if name.ends_with("INFINITY") {
                    others = vec!["* -1.0"];
                }
                for suffix in others {
                    self.replace(e, format!("({name} {suffix})"));
                }
            }
            Expr::MethodCall(call) => {
                if let Some(other) = other_method(&call.method.to_string()) {
                    let (start, end) = (call.span().byte_range(), call.method.span().byte_range());
                    let with = format!(
                        "{}{other}{}",
                        &self.source[start.start..end.start],
                        &self.source[end.end..start.end]
                    );
                    let what = format!("`{}` becomes `{other}`: `{}`", call.method, short(text(self.source, e)));
                    self.add(Form::Replace, call.span(), with, what);
                }
            }
            Expr::If(i) => self.condition(&i.cond),
            Expr::While(w) => self.condition(&w.cond),
            _ => {}
        }
        visit::visit_expr(self, e);
    }
}

/// Expressions that stand for a made-up result of a type.
fn made_up(ty: &Type) -> &'static [&'static str] {
    let Type::Path(path) = ty else {
        return match ty {
            Type::Tuple(t) if t.elems.is_empty() => &["()"],
            _ => &["Default::default()"],
        };
    };
    let Some(last) = path.path.segments.last() else {
        return &[];
    };
    match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "f32" | "f64" => &["0.0", "1.0"],
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => &["0", "1"],
        "Option" => &["None"],
        "Result" | "Checked" | "Parsed" => &["Ok(Default::default())"],
        _ => &["Default::default()"],
    }
}

fn other_operators(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) | BinOp::Rem(_) => &["*"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::BitXor(_) | BinOp::BitOr(_) => &["&"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::AddAssign(_) => &["-=", "="],
        BinOp::SubAssign(_) => &["+=", "="],
        BinOp::MulAssign(_) => &["/=", "="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitAndAssign(_) => &["|="],
        _ => &[],
    }
}

fn other_literals(lit: &Lit) -> Vec<String> {
    match lit {
        Lit::Int(int) => match int.base10_parse::<u128>() {
            Ok(value) => vec![format!("{}{}", value + 1, int.suffix())],
            Err(_) => Vec::new(),
        },
        Lit::Float(float) => match float.base10_parse::<f64>() {
            Ok(0.0) => vec![format!("1.0{}", float.suffix())],
            Ok(value) => vec![format!("{:?}{}", 2.0 * value, float.suffix())],
            Err(_) => Vec::new(),
        },
        Lit::Bool(bool) => vec![format!("{}", !bool.value)],
        _ => Vec::new(),
    }
}

fn other_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "min" => "max",
        "max" => "min",
        "floor" => "ceil",
        "ceil" => "floor",
        "round" => "floor",
        "any" => "all",
        "all" => "any",
        "is_some" => "is_none",
        "is_none" => "is_some",
        "is_ok" => "is_err",
        "sin" => "cos",
        "cos" => "sin",
        "saturating_sub" => "wrapping_sub",
        "div_ceil" => "wrapping_div",
        "min_element" => "max_element",
        "max_element" => "min_element",
        "first" => "last",
        "last" => "first",
        _ => return None,
    })
}

/// Whether a path ends in a name like `LIMIT`.
fn is_constant(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|segment| {
        let name = segment.ident.to_string();
        name.len() > 1
            && name
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        let list = || {
            a.meta
                .require_list()
                .is_ok_and(|list| list.tokens.to_string() == "test")
        };
        a.path().is_ident("test") || (a.path().is_ident("cfg") && list())
    })
}

/// On one line and cut short.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(70) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

mod quote_free {
    use syn::spanned::Spanned;

    /// The source of a node.
    pub(super) fn text<'a>(source: &'a str, node: &impl Spanned) -> &'a str {
        &source[node.span().byte_range()]
    }
}
