import StrataRows
import StrataSQL

/// A cursor over a version that is already held.
///
/// The keys are in memory, and the rows of a piece are read when it is taken.
///
/// So other reads can run in between.
final class KeyedCursor: RowCursor {
    private let references: [ObjectReference]
    private unowned(unsafe) let layout: EntityLayout
    // Layouts live as long as the process.
    private let reading: SQLiteReading
    private var position = 0

    init(_ references: [ObjectReference], of layout: EntityLayout, from reading: SQLiteReading) {
        self.references = references
        self.layout = layout
        self.reading = reading
    }

    func next(_ count: Int) throws -> [Row] {
        let piece = references[position...].prefix(count)
        guard !piece.isEmpty else { return [] }
        position += piece.count
        var places = KeyMap<Int>(minimumCapacity: piece.count)
        for (place, reference) in piece.enumerated() { places.set(place, for: reference.key) }
        var rows = [Row?](repeating: nil, count: piece.count)
        for row in try reading.rows(forKeys: piece.map(\.key), in: layout) {
            if let place = places[row.key] { rows[place] = row }
        }
        return rows.compactMap { $0 }
    }
}
