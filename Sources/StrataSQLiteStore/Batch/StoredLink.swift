import StrataRows
import StrataSQL

extension StoredLink {
    /// The text after FROM in a query for the destinations (`d`) of doomed rows (`v`).
    func members(_ doomed: DoomedRows, round: Bool = false) -> String {
        let owners = "\(doomed.name(owner.rootNumber)) AS v"
        let conditions = [round ? "v.r = ?" : nil, doomed.entityCondition(self)].compactMap { $0 }
        // SQLite joins in the written order: the doomed rows come first.
        let narrowed =
            conditions.isEmpty
            ? owners : "(SELECT v.k AS k FROM \(owners) WHERE \(conditions.joined(separator: " AND "))) AS v"
        switch place {
        case .column(let column):
            return
                "\(narrowed) CROSS JOIN \(owner.table) AS o ON o.Z_PK = v.k CROSS JOIN \(destination.table) AS d ON d.Z_PK = o.\(column.name ?? .key)"
        case .toMany(.key(let key)):
            return "\(narrowed) CROSS JOIN \(key.table) AS d ON d.\(key.column) = v.k"
        case .toMany(.join(let side)):
            return
                "\(narrowed) CROSS JOIN \(side.table) AS j ON j.\(side.owner) = v.k CROSS JOIN \(side.memberTable) AS d ON d.Z_PK = j.\(side.member)"
        case .toMany(.absent): return "\(narrowed) CROSS JOIN \(destination.table) AS d ON 0"
        }
    }
}
