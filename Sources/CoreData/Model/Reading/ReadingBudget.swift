import StrataPredicates

/// Limits the work that a model file can cause by referring to one of its parts again and again.
final class ReadingBudget {
    private var left = 1_000_000

    /// Counts parts that are about to be read.
    ///
    /// - Throws: An error when the file has used up what any real model needs many times over.
    func spend(_ count: Int) throws(ModelError) {
        guard count <= left else { throw ModelError(.malformed, "it repeats its parts too often") }
        left -= count
    }
}

/// The plain values in an archive, each made once.
final class ArchivedValues {
    private var reader: PropertyArchiveReader

    init(_ archive: KeyedArchive) {
        // No classes but the plain ones.
        reader = PropertyArchiveReader(archive: archive, rule: .classes([]))
    }

    /// The value with a number, or `nil` when it is no plain value or damaged.
    func value(_ number: Int) -> Any? {
        reader.read(number, depth: 0)
    }
}
