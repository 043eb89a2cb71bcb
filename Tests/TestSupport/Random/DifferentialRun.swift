import CoreData
import StrataPredicates
import StrataSQL
import Testing

/// The outcome of the fetches for one seed.
package struct DifferentialRun {
    package let seed: UInt64
    package var failures = 0
    package var found = 0

    package init(seed: UInt64) { self.seed = seed }

    package mutating func fail(
        _ what: String,
        _ specification: FetchSpecification,
        _ sql: (text: String, bindings: [SQLBinding])?
    ) {
        failures += 1
        let sorts = (specification.sortDescriptors ?? []).map { "\($0.key ?? "") \($0.ascending)" }
        Issue.record(
            """
            seed \(seed): \(what)
            \(specification.entity?.name ?? "") where \(specification.predicate?.formatText ?? "") by \(sorts) \
            limit \(specification.fetchLimit) offset \(specification.fetchOffset)
            \(sql?.text ?? "") \(sql?.bindings ?? [])
            """
        )
    }
}
