import StrataRows
import StrataSQL
import StrataSQLite

/// A relationship with a delete rule, as the tables of a store have it.
struct StoredLink {
    let link: DeleteLink
    let owner: EntityMapping
    let destination: EntityMapping
    let place: Place
    /// The to-one relationship at the other end, if that is one.
    let inverseColumn: SlotColumn?

    /// Where the relationship is stored.
    enum Place {
        /// A column of the owner's row.
        case column(SlotColumn)
        case toMany(ToManyMapping)
    }

    /// `nil` for a relationship that the store does not hold.
    init?(_ link: DeleteLink, _ mapping: SQLMapping) {
        guard let owner = mapping.entity(link.owner), let destination = mapping.entity(link.destination) else {
            return nil
        }
        switch link.owner.places[link.name] {
        case .slot(let index):
            guard owner.columns[index].name != nil else { return nil }
            place = .column(owner.columns[index])
        case .toMany(let index):
            if case .absent = owner.toMany[index] { return nil }
            place = .toMany(owner.toMany[index])
        default: return nil
        }
        let inverse = link.inverse.flatMap { $0.isToMany || $0.isTransient ? nil : destination.column(named: $0.name) }
        inverseColumn = inverse?.name == nil ? nil : inverse
        self.link = link
        self.owner = owner
        self.destination = destination
    }

    /// Whether more has to be done than to delete the row.
    ///
    /// A history also records the owners of the relationship.
    func needsWork(isRecorded: Bool) -> Bool {
        switch link.relationship.deleteRule {
        case .cascade, .deny: return true
        case .nullify where inverseColumn != nil: return true
        default: break
        }
        switch place {
        case .column(let column): return column.order != nil || (isRecorded && link.inverse?.isToMany == true)
        case .toMany(.join): return true
        case .toMany(.key(let key)): return key.isWithoutInverse
        case .toMany(.absent): return false
        }
    }

    /// What follows FROM in a query for the destinations (`d`) of doomed rows (`v`).
    func members(_ doomed: DoomedRows, round: Bool = false) -> String {
        let owners = "\(doomed.name(owner.rootNumber)) AS v"
        let conditions = [round ? "v.r = ?" : nil, doomed.entityCondition(self)].compactMap { $0 }
        // In the order in which it is written: what is doomed comes first.
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
