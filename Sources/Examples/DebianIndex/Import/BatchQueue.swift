import Foundation

/// Packages that are imported together, in one save.
struct Batch: Sendable {
    let records: [PackageRecord]
    /// The date of the index that they came from.
    let indexedAt: Date
}

/// Gives out the packages of several indexes, batch by batch, to the workers that ask for them.
///
/// It reads only on demand, so that no more than one batch for each worker is in memory.
actor BatchQueue {
    private let size: Int
    private var files: ArraySlice<IndexFile>
    private var current: (reader: ControlFileReader, date: Date)?

    init(_ files: [IndexFile], size: Int) {
        self.files = files[...]
        self.size = size
    }

    /// The next batch; `nil` if every index has been read.
    func next() throws -> Batch? {
        while true {
            if current == nil {
                guard let file = files.popFirst() else { return nil }
                current = (try file.open(), file.modified)
            }
            guard let (reader, date) = current else { return nil }

            var records: [PackageRecord] = []
            records.reserveCapacity(size)
            while records.count < size, let item = try reader.next() {
                if case .package(let record) = item { records.append(record) }
            }
            if records.count < size { current = nil }
            if !records.isEmpty { return Batch(records: records, indexedAt: date) }
        }
    }
}
