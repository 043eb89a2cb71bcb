import CoreDataEssentials
import StrataArchives
import StrataPredicates

/// Limits the work that a model file can cause by referring to one of its parts again and again.
package final class ReadingBudget {
    private var left = 1_000_000

    package init() {}

    /// Counts parts that are about to be read.
    ///
    /// - Throws: An error if the file exceeds a limit, which is far beyond the needs of any real model.
    package func spend(_ count: Int) throws(ModelError) {
        guard count <= left else { throw ModelError(.malformed, "it repeats its parts too often") }
        left -= count
    }
}

/// The plain values in an archive, each read once.
package final class ArchivedValues {
    private var reader: PropertyArchiveReader

    package init(_ archive: KeyedArchive) {
        // Only plain classes are allowed.
        reader = PropertyArchiveReader(archive: archive, rule: .classes([]))
    }

    /// The value with a number; `nil` if it is damaged or no plain value.
    package func value(_ number: Int) -> Any? {
        reader.read(number, depth: 0)
    }
}
