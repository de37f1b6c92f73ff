//! The kernel's program of a filter: it finds a call by its number, and asks about its arguments.
//!
//! The kernel runs a filter for every call there is when the filter is set, which is for each command. So numbers are
//! searched by halves: a chain of comparisons, as the library makes it, takes 0.4 ms of each command.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, sock_filter};

/// What is answered to the calls of a table, by their numbers; all others are let through.
pub(super) type Table = BTreeMap<libc::c_long, Refusal>;

/// When a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Whatever its arguments are, with this error.
    Always(i32),
    /// With `EPERM`, if one of these cases is given.
    If(Vec<Case>),
}

/// Everything that must hold of the arguments.
pub(super) type Case = Vec<Test>;

/// A question about an argument, which is given by its position. Numbers are compared as the kernel takes them: 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Is(u8, u32),
    IsNot(u8, u32),
    HasAny(u8, u32),
    /// What the mask leaves of the argument is something else.
    MaskedIsNot(u8, u32, u32),
    MaskedIs(u8, u32, u32),
    /// A pointer that leads somewhere.
    IsGiven(u8),
}

/// Where the kernel shows a filter the number of a call, the table it is from, and its arguments; see seccomp(2).
const NUMBER: u32 = 0;
const TABLE: u32 = 4;
const ARGUMENTS: u32 = 16;
/// The table of this processor.
const OWN_TABLE: u32 = if cfg!(target_arch = "aarch64") { 0xC000_00B7 } else { 0xC000_003E };
/// The newest call that was looked at, `rseq_slice_yield` of Linux 7.0. What a later kernel brings is not there, as on
/// the kernels before it: nobody knows yet what it reaches. Numbers are the same on all processors by now.
const NEWEST: u32 = 471;

/// Makes the program of a table.
pub(super) fn of(table: &Table) -> BpfProgram {
    let mut program = vec![
        load(TABLE),
        jump(libc::BPF_JEQ, OWN_TABLE, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        // Those of x32, which have a bit set that no other number has, come after all others.
        jump(libc::BPF_JGT, NEWEST, 0, 1),
        answer(refused(libc::ENOSYS)),
    ];
    let entries: Vec<(u32, &Refusal)> = table.iter().map(|(number, refusal)| (*number as u32, refusal)).collect();
    program.extend(search(&entries));
    program
}

/// Finds a call by halves. The entries are sorted.
fn search(entries: &[(u32, &Refusal)]) -> Vec<sock_filter> {
    match entries {
        [] => vec![answer(libc::SECCOMP_RET_ALLOW)],
        [(number, refusal)] => {
            let mut found = vec![jump(libc::BPF_JEQ, *number, 1, 0), answer(libc::SECCOMP_RET_ALLOW)];
            found.extend(judge(refusal));
            found
        }
        more => {
            let (low, high) = more.split_at(more.len() / 2);
            let (first_high, low) = (high[0].0, search(low));
            // The jump of a comparison does not reach over everything that half of the table can be.
            let mut found = vec![jump(libc::BPF_JGE, first_high, 0, 1), skip(low.len())];
            found.extend(low);
            found.extend(search(high));
            found
        }
    }
}

/// Answers a call that was found.
fn judge(refusal: &Refusal) -> Vec<sock_filter> {
    let cases = match refusal {
        Refusal::Always(errno) => return vec![answer(refused(*errno))],
        Refusal::If(cases) => cases,
    };
    let mut judged = Vec::new();
    for case in cases {
        let mut rest = vec![answer(refused(libc::EPERM))];
        for test in case.iter().rev() {
            // Those that come later are skipped where this one fails.
            let mut asked = ask(test, rest.len());
            asked.extend(rest);
            rest = asked;
        }
        judged.extend(rest);
    }
    judged.push(answer(libc::SECCOMP_RET_ALLOW));
    judged
}

/// Asks about an argument, and skips so many instructions unless it is so.
fn ask(test: &Test, n_skipped: usize) -> Vec<sock_filter> {
    let over = u8::try_from(n_skipped).expect("a case has few tests");
    let if_so = |comparison, value| jump(comparison, value, 0, over);
    let unless = |comparison, value| jump(comparison, value, over, 0);
    match *test {
        Test::Is(position, value) => vec![load(low(position)), if_so(libc::BPF_JEQ, value)],
        Test::IsNot(position, value) => vec![load(low(position)), unless(libc::BPF_JEQ, value)],
        Test::HasAny(position, bits) => vec![load(low(position)), if_so(libc::BPF_JSET, bits)],
        Test::MaskedIs(position, mask, value) => vec![load(low(position)), and(mask), if_so(libc::BPF_JEQ, value)],
        Test::MaskedIsNot(position, mask, value) => vec![load(low(position)), and(mask), unless(libc::BPF_JEQ, value)],
        Test::IsGiven(position) => {
            vec![load(low(position)), jump(libc::BPF_JEQ, 0, 0, 2), load(high(position)), unless(libc::BPF_JEQ, 0)]
        }
    }
}

/// Where the low half of an argument is. The processors that pith is made for put it first.
fn low(position: u8) -> u32 {
    ARGUMENTS + 8 * u32::from(position)
}

fn high(position: u8) -> u32 {
    low(position) + 4
}

fn refused(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

fn and(mask: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16, jt: 0, jf: 0, k: mask }
}

fn jump(comparison: u32, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | comparison | libc::BPF_K) as u16, jt: if_so, jf: if_not, k: value }
}

fn skip(n: usize) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | libc::BPF_JA) as u16, jt: 0, jf: 0, k: n as u32 }
}

fn answer(value: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: value }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A call as the kernel shows it to a filter.
    #[derive(Clone, Copy, Debug)]
    pub struct Call {
        pub table: u32,
        pub number: u32,
        pub arguments: [u64; 6],
    }

    pub fn call(number: libc::c_long, arguments: [u64; 6]) -> Call {
        Call { table: OWN_TABLE, number: number as u32, arguments }
    }

    pub fn errno(number: i32) -> u32 {
        refused(number)
    }

    /// What a filter answers, run as the kernel runs it.
    pub fn run(program: &[sock_filter], call: Call) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let jumped = |is_so: bool| at + 1 + usize::from(if is_so { jt } else { jf });
            at = match code {
                0x20 => {
                    value = match k {
                        NUMBER => call.number,
                        TABLE => call.table,
                        offset => {
                            let (position, half) = ((offset - ARGUMENTS) / 8, (offset - ARGUMENTS) % 8);
                            (call.arguments[position as usize] >> (8 * half)) as u32
                        }
                    };
                    at + 1
                }
                0x54 => {
                    value &= k;
                    at + 1
                }
                0x05 => at + 1 + k as usize,
                0x15 => jumped(value == k),
                0x25 => jumped(value > k),
                0x35 => jumped(value >= k),
                0x45 => jumped(value & k != 0),
                0x06 => return k,
                other => panic!("{other:#x}"),
            };
        }
    }

    /// What a table says, read without a program.
    fn expected(table: &Table, call: Call) -> u32 {
        let holds = |test: &Test| {
            let low = |position: u8| call.arguments[usize::from(position)] as u32;
            match *test {
                Test::Is(position, value) => low(position) == value,
                Test::IsNot(position, value) => low(position) != value,
                Test::HasAny(position, bits) => low(position) & bits != 0,
                Test::MaskedIs(position, mask, value) => low(position) & mask == value,
                Test::MaskedIsNot(position, mask, value) => low(position) & mask != value,
                Test::IsGiven(position) => call.arguments[usize::from(position)] != 0,
            }
        };
        match table.get(&libc::c_long::from(call.number)) {
            _ if call.number > NEWEST => errno(libc::ENOSYS),
            None => libc::SECCOMP_RET_ALLOW,
            Some(Refusal::Always(number)) => errno(*number),
            Some(Refusal::If(cases)) if cases.iter().any(|case| case.iter().all(holds)) => errno(libc::EPERM),
            Some(Refusal::If(_)) => libc::SECCOMP_RET_ALLOW,
        }
    }

    /// Numbers that follow from a seed.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, below: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % below
        }

        /// A value that others are likely to be too, with and without something in the high half.
        fn value(&mut self) -> u64 {
            [0, 1, 2, 5, 8, 0o6000, 0o755, 1 << 32, u64::MAX][self.roll(9) as usize]
        }

        fn test(&mut self) -> Test {
            let (position, value, mask) = (self.roll(6) as u8, self.value() as u32, self.value() as u32);
            match self.roll(6) {
                0 => Test::Is(position, value),
                1 => Test::IsNot(position, value),
                2 => Test::HasAny(position, mask),
                3 => Test::MaskedIs(position, mask, value & mask),
                4 => Test::MaskedIsNot(position, mask, value & mask),
                _ => Test::IsGiven(position),
            }
        }

        fn table(&mut self) -> Table {
            let n_calls = self.roll(80);
            let entry = |dice: &mut Dice| {
                let refusal = match dice.roll(3) {
                    0 => Refusal::Always([libc::EPERM, libc::ENOSYS][dice.roll(2) as usize]),
                    _ => Refusal::If(
                        (0..dice.roll(9)).map(|_| (0..dice.roll(5)).map(|_| dice.test()).collect()).collect(),
                    ),
                };
                (dice.roll(500) as libc::c_long, refusal)
            };
            (0..n_calls).map(|_| entry(self)).collect()
        }
    }

    #[test]
    fn a_program_answers_as_its_table_says() {
        let mut dice = Dice(7);
        for _ in 0..60 {
            let table = dice.table();
            let program = of(&table);
            for number in 0..500 {
                for _ in 0..5 {
                    let call = call(number, std::array::from_fn(|_| dice.value()));
                    assert_eq!(run(&program, call), expected(&table, call), "{call:?} of {table:?}");
                    let x32 = Call { number: 0x4000_0000 | call.number, ..call };
                    assert_eq!(run(&program, x32), errno(libc::ENOSYS), "{number} of x32");
                    let i386 = Call { table: 0x4000_0003, ..call };
                    assert_eq!(run(&program, i386), libc::SECCOMP_RET_KILL_PROCESS, "{number} of i386");
                }
            }
        }
    }
}
