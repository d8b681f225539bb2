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
    /// NEON, which every 64-bit Arm has.
    pub neon: bool,
    /// Arm's products of four pairs of bytes (FEAT_DotProd).
    pub dotprod: bool,
    /// Arm's products of matrices of bytes (FEAT_I8MM).
    pub i8mm: bool,
}

/// One step on the ladder of an architecture's instruction sets: each includes those before it on the same ladder, as
/// far as the machine has them, and nothing of another one. All begin with the portable step. A machine with AVX-512
/// may lack the step [`Level::AvxVnni`].
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
    /// NEON: the first step of 64-bit Arm.
    Neon,
    /// Products of four pairs of bytes.
    DotProd,
    /// Products of matrices of bytes.
    I8mm,
}

impl Isa {
    /// None: portable code only.
    pub const PORTABLE: Isa = Isa {
        avx2: false,
        avx_vnni: false,
        avx512: false,
        vnni: false,
        neon: false,
        dotprod: false,
        i8mm: false,
    };

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
            Isa { avx2, avx_vnni, avx512, vnni, ..Isa::PORTABLE }
        }
        #[cfg(target_arch = "aarch64")]
        {
            use std::arch::is_aarch64_feature_detected as has;
            let neon = has!("neon");
            let dotprod = neon && has!("dotprod");
            Isa { neon, dotprod, i8mm: dotprod && has!("i8mm"), ..Isa::PORTABLE }
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
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
            neon: self.neon && other.neon,
            dotprod: self.dotprod && other.dotprod,
            i8mm: self.i8mm && other.i8mm,
        }
    }

    /// The highest level that is allowed.
    pub(crate) fn level(self) -> Level {
        match self {
            Isa { vnni: true, .. } => Level::Vnni,
            Isa { avx512: true, .. } => Level::Avx512,
            Isa { avx_vnni: true, .. } => Level::AvxVnni,
            Isa { avx2: true, .. } => Level::Avx2,
            Isa { i8mm: true, .. } => Level::I8mm,
            Isa { dotprod: true, .. } => Level::DotProd,
            Isa { neon: true, .. } => Level::Neon,
            _ => Level::Portable,
        }
    }
}

impl Level {
    /// All of them, each ladder from its lowest step up.
    const ALL: [Level; 8] = [
        Level::Portable,
        Level::Avx2,
        Level::AvxVnni,
        Level::Avx512,
        Level::Vnni,
        Level::Neon,
        Level::DotProd,
        Level::I8mm,
    ];

    /// Whether a CPU of this level runs code for the other one.
    fn includes(self, other: Level) -> bool {
        let is_arms = |level: Level| level >= Level::Neon;
        other == Level::Portable || (other <= self && is_arms(other) == is_arms(self))
    }

    /// This level and those below it.
    fn isa(self) -> Isa {
        Isa {
            avx2: self.includes(Level::Avx2),
            avx_vnni: self.includes(Level::AvxVnni),
            avx512: self.includes(Level::Avx512),
            vnni: self.includes(Level::Vnni),
            neon: self.includes(Level::Neon),
            dotprod: self.includes(Level::DotProd),
            i8mm: self.includes(Level::I8mm),
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

/// Whether AVX-512 VNNI may run and has units of half its width, in which simple instructions take no time from products.
/// No result depends on it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_halved_vnni(isa: Isa) -> bool {
    #[cfg(test)]
    if let Some(is_halved) = pretended::HALVED.get() {
        return has_vnni(isa) && is_halved;
    }
    has_vnni(isa) && burst_shm::is_zen4()
}

/// Tests try what is done on machines with units of whole and of half width.
#[cfg(test)]
pub(crate) mod pretended {
    use std::cell::Cell;

    thread_local! {
        pub(super) static HALVED: Cell<Option<bool>> = const { Cell::new(None) };
    }

    /// Runs this as on a machine of either kind, if this one can tell them apart.
    pub(crate) fn on_both_widths(mut test: impl FnMut()) {
        let kinds: &[bool] =
            if super::has_vnni(super::Isa::detect()) { &[false, true] } else { &[false] };
        for is_halved in kinds {
            HALVED.set(Some(*is_halved));
            test();
        }
        HALVED.set(None);
    }
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

/// Whether code for NEON may run: allowed by the caller, and there.
#[cfg(target_arch = "aarch64")]
pub(crate) fn has_neon(isa: Isa) -> bool {
    isa.neon && std::arch::is_aarch64_feature_detected!("neon")
}

/// Whether code for NEON and products of four pairs of bytes may run: allowed by the caller, and there.
#[cfg(target_arch = "aarch64")]
pub(crate) fn has_dotprod(isa: Isa) -> bool {
    isa.dotprod && has_neon(isa) && std::arch::is_aarch64_feature_detected!("dotprod")
}

/// Whether code for NEON and products of matrices of bytes may run: allowed by the caller, and there.
#[cfg(target_arch = "aarch64")]
pub(crate) fn has_i8mm(isa: Isa) -> bool {
    isa.i8mm && has_dotprod(isa) && std::arch::is_aarch64_feature_detected!("i8mm")
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

    /// There is no VNNI here.
    pub(crate) fn has_vnni(_: Isa) -> bool {
        false
    }

    /// There is no VNNI here.
    pub(crate) fn has_halved_vnni(_: Isa) -> bool {
        false
    }
}
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use other_architectures::{has_avx_vnni, has_avx2, has_halved_vnni, has_vnni};

#[cfg(not(target_arch = "aarch64"))]
mod other_than_arm {
    use super::Isa;

    /// There are no such products here.
    pub(crate) fn has_dotprod(_: Isa) -> bool {
        false
    }
}
#[cfg(not(target_arch = "aarch64"))]
pub(crate) use other_than_arm::has_dotprod;

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
        let x86 = [Level::Portable, Level::Avx2, Level::AvxVnni, Level::Avx512, Level::Vnni];
        assert_eq!(levels(all), x86);
        let client = Isa { avx512: false, vnni: false, ..all };
        assert_eq!(levels(client), [Level::Portable, Level::Avx2, Level::AvxVnni]);
        let without_avx_vnni = Isa { avx_vnni: false, ..all };
        let want = [Level::Portable, Level::Avx2, Level::Avx512, Level::Vnni];
        assert_eq!(levels(without_avx_vnni), want);
        assert!(without_avx_vnni.each().all(|isa| !isa.avx_vnni));
        assert_eq!(without_avx_vnni.each().last(), Some(without_avx_vnni));
    }

    #[test]
    fn a_level_includes_those_below_it_and_none_of_another_architecture() {
        for (level, included) in [
            (Level::Portable, &[Level::Portable][..]),
            (Level::Avx512, &[Level::Portable, Level::Avx2, Level::AvxVnni, Level::Avx512]),
            (Level::Neon, &[Level::Portable, Level::Neon]),
            (Level::I8mm, &[Level::Portable, Level::Neon, Level::DotProd, Level::I8mm]),
        ] {
            let all = Level::ALL.into_iter().filter(|other| level.includes(*other));
            assert_eq!(all.collect::<Vec<_>>(), included, "{level:?}");
        }
    }
}
