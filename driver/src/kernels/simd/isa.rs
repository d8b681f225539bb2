//! Instruction sets: which there are, which this machine has, and which a caller allows.

/// Instruction sets that kernels may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa {
    /// AVX2 and FMA.
    pub avx2: bool,
    /// AVX-VNNI: what AVX-512 VNNI multiplies, in registers and an encoding of AVX2.
    pub avx_vnni: bool,
    /// AVX-512 F, BW, DQ and VL.
    pub avx512: bool,
    /// AVX-512 VNNI.
    pub vnni: bool,
}

/// One step on the ladder of instruction sets: each includes those before it, as far as the machine has them. One with
/// AVX-512 may lack the step [`Level::AvxVnni`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What every CPU of the architecture has.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-VNNI.
    AvxVnni,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512 VNNI.
    Vnni,
}

impl Isa {
    /// None: portable code only.
    pub const PORTABLE: Isa = Isa { avx2: false, avx_vnni: false, avx512: false, vnni: false };

    /// What this machine has.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            let avx512 =
                avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
            let (avx_vnni, vnni) = (avx2 && has!("avxvnni"), avx512 && has!("avx512vnni"));
            Isa { avx2, avx_vnni, avx512, vnni }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Isa::PORTABLE
    }

    /// The levels of this machine from the portable one up, each as a kernel is told of it: for
    /// callers that want every form of a kernel and not only the fastest.
    pub fn each_here() -> impl Iterator<Item = Isa> {
        Isa::detect().each()
    }

    /// The levels of these instruction sets from the portable one up.
    fn each(self) -> impl Iterator<Item = Isa> {
        let levels = Level::ALL.into_iter().filter(move |level| self.has(*level));
        levels.map(move |level| level.isa().within(self))
    }

    /// Whether what a level adds to the one below it is among these.
    pub(crate) fn has(self, level: Level) -> bool {
        level.isa().within(self).level() == level
    }

    /// What is among these and among others.
    fn within(self, other: Isa) -> Isa {
        Isa {
            avx2: self.avx2 && other.avx2,
            avx_vnni: self.avx_vnni && other.avx_vnni,
            avx512: self.avx512 && other.avx512,
            vnni: self.vnni && other.vnni,
        }
    }

    /// The highest level that is allowed.
    pub(crate) fn level(self) -> Level {
        match self {
            Isa { vnni: true, .. } => Level::Vnni,
            Isa { avx512: true, .. } => Level::Avx512,
            Isa { avx_vnni: true, .. } => Level::AvxVnni,
            Isa { avx2: true, .. } => Level::Avx2,
            _ => Level::Portable,
        }
    }
}

impl Level {
    const ALL: [Level; 5] =
        [Level::Portable, Level::Avx2, Level::AvxVnni, Level::Avx512, Level::Vnni];

    /// This level and those below it.
    fn isa(self) -> Isa {
        Isa {
            avx2: self >= Level::Avx2,
            avx_vnni: self >= Level::AvxVnni,
            avx512: self >= Level::Avx512,
            vnni: self >= Level::Vnni,
        }
    }
}

/// Whether code for AVX-512 F, BW, DQ and VL may run: allowed by the caller, and there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512(isa: Isa) -> bool {
    use std::arch::is_x86_feature_detected as has;
    isa.avx512 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")
}

/// Whether code for AVX-512 with VNNI may run: allowed by the caller, and there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_vnni(isa: Isa) -> bool {
    isa.vnni && has_avx512(isa) && std::arch::is_x86_feature_detected!("avx512vnni")
}

/// Whether code for AVX-VNNI, and with it AVX2, may run: allowed by the caller, and there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx_vnni(isa: Isa) -> bool {
    isa.avx_vnni && has_avx2(isa) && std::arch::is_x86_feature_detected!("avxvnni")
}

/// Whether code for AVX2 and FMA may run: allowed by the caller, and there.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2(isa: Isa) -> bool {
    use std::arch::is_x86_feature_detected as has;
    isa.avx2 && has!("avx2") && has!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
mod other_architectures {
    use super::Isa;

    /// There is no AVX2 here.
    pub(crate) fn has_avx2(_: Isa) -> bool {
        false
    }

    /// There is no AVX-VNNI here.
    pub(crate) fn has_avx_vnni(_: Isa) -> bool {
        false
    }

    /// There is no AVX-512 here.
    pub(crate) fn has_avx512(_: Isa) -> bool {
        false
    }

    /// There is no VNNI here.
    pub(crate) fn has_vnni(_: Isa) -> bool {
        false
    }
}
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use other_architectures::{has_avx_vnni, has_avx2, has_avx512, has_vnni};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_told_as_instruction_sets_and_back() {
        for level in Level::ALL {
            assert_eq!(level.isa().level(), level);
        }
        assert_eq!(Level::Portable.isa(), Isa::PORTABLE);
        let here: Vec<Isa> = Isa::each_here().collect();
        assert_eq!(here.first(), Some(&Isa::PORTABLE));
        assert_eq!(here.last(), Some(&Isa::detect()));
    }

    #[test]
    fn a_machine_that_lacks_a_step_has_those_above_it() {
        let all = Level::Vnni.isa();
        let levels = |isa: Isa| isa.each().map(Isa::level).collect::<Vec<Level>>();
        assert_eq!(levels(all), Level::ALL);
        let client = Isa { avx512: false, vnni: false, ..all };
        assert_eq!(levels(client), [Level::Portable, Level::Avx2, Level::AvxVnni]);
        let without_avx_vnni = Isa { avx_vnni: false, ..all };
        let want = [Level::Portable, Level::Avx2, Level::Avx512, Level::Vnni];
        assert_eq!(levels(without_avx_vnni), want);
        assert!(without_avx_vnni.each().all(|isa| !isa.avx_vnni));
        assert_eq!(without_avx_vnni.each().last(), Some(without_avx_vnni));
    }
}
