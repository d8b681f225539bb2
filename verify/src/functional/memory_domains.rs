//! Buffers of a driver: `MemoryDomainAllocateTest`, `MemoryDomainCopyTest`, `MemoryDomainExecutionTest`.

mod allocate;
mod copy;
mod execute;
mod subject;

use super::Check;

/// Every row that can be asked of a trait. A null prepared model is not among them: there is none.
pub const CHECKS: &[Check] = &[
    Check { name: "MemoryDomainAllocateTest/EmptyRole", run: allocate::empty_role },
    Check {
        name: "MemoryDomainAllocateTest/InvalidPreparedModel",
        run: allocate::invalid_prepared_model,
    },
    Check {
        name: "MemoryDomainAllocateTest/InvalidModelIndex",
        run: allocate::invalid_model_index,
    },
    Check { name: "MemoryDomainAllocateTest/InvalidIOIndex", run: allocate::invalid_io_index },
    Check { name: "MemoryDomainAllocateTest/InvalidFrequency", run: allocate::invalid_frequency },
    Check {
        name: "MemoryDomainAllocateTest/SameRoleSpecifiedTwice",
        run: allocate::same_role_specified_twice,
    },
    Check {
        name: "MemoryDomainAllocateTest/ConflictOperandType",
        run: allocate::conflict_operand_type,
    },
    Check { name: "MemoryDomainAllocateTest/ConflictScale", run: allocate::conflict_scale },
    Check {
        name: "MemoryDomainAllocateTest/ConflictZeroPoint",
        run: allocate::conflict_zero_point,
    },
    Check {
        name: "MemoryDomainAllocateTest/ConflictRankBetweenRoles",
        run: allocate::conflict_rank_between_roles,
    },
    Check {
        name: "MemoryDomainAllocateTest/ConflictDimensionsBetweenRoles",
        run: allocate::conflict_dimensions_between_roles,
    },
    Check {
        name: "MemoryDomainAllocateTest/ConflictRankBetweenRoleAndDesc",
        run: allocate::conflict_rank_between_role_and_desc,
    },
    Check {
        name: "MemoryDomainAllocateTest/ConflictDimensionsBetweenRoleAndDesc",
        run: allocate::conflict_dimensions_between_role_and_desc,
    },
    Check {
        name: "MemoryDomainAllocateTest/ConflictRankWithScalarRole",
        run: allocate::conflict_rank_with_scalar_role,
    },
    Check { name: "MemoryDomainCopyTest/CopyFrom_InvalidMemorySize", run: copy::from_invalid_size },
    Check {
        name: "MemoryDomainCopyTest/CopyFrom_InvalidMemorySize_DynamicShape",
        run: copy::from_invalid_size_dynamic,
    },
    Check { name: "MemoryDomainCopyTest/CopyTo_InvalidMemorySize", run: copy::to_invalid_size },
    Check {
        name: "MemoryDomainCopyTest/CopyTo_InvalidMemorySize_DynamicShape",
        run: copy::to_invalid_size_dynamic,
    },
    Check {
        name: "MemoryDomainCopyTest/CopyFrom_InvalidDimensions",
        run: copy::from_invalid_dimensions,
    },
    Check {
        name: "MemoryDomainCopyTest/CopyFrom_InvalidDimensions_DynamicShape",
        run: copy::from_invalid_dimensions_dynamic,
    },
    Check { name: "MemoryDomainCopyTest/CopyTo_UninitializedMemory", run: copy::to_uninitialized },
    Check { name: "MemoryDomainExecutionTest/InvalidToken", run: execute::invalid_token },
    Check {
        name: "MemoryDomainExecutionTest/InvalidPreparedModel",
        run: execute::invalid_prepared_model,
    },
    Check { name: "MemoryDomainExecutionTest/InvalidIOIndex", run: execute::invalid_io_index },
    Check { name: "MemoryDomainExecutionTest/InvalidIOType", run: execute::invalid_io_type },
    Check {
        name: "MemoryDomainExecutionTest/SameRequestMultipleRoles",
        run: execute::same_request_multiple_roles,
    },
    Check {
        name: "MemoryDomainExecutionTest/UninitializedMemory",
        run: execute::uninitialized_memory,
    },
    Check { name: "MemoryDomainExecutionTest/InvalidDimensions", run: execute::invalid_dimensions },
    Check { name: "MemoryDomain/FailureLeavesNoValue", run: execute::failure_leaves_no_value },
    Check { name: "MemoryDomain/FromModelToModel", run: execute::from_model_to_model },
];
