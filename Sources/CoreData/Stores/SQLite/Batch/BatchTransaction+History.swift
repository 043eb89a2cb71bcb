import StrataSQLite

extension BatchTransaction {
    /// Records the rows that are about to go, as values are kept of some; called once they are listed, and still there.
    func recordDeletions() throws {
        guard let history else { return }
        for rows in changes.deleted {
            if let entity = mapping.entity(rows.layout) { try history.willDelete(rows.keys, entity) }
        }
    }

    /// Records inserted and changed rows, when everything is written.
    func recordHistory() throws {
        guard let history else { return }
        for rows in changes.inserted {
            if let entity = mapping.entity(rows.layout) { try history.inserted(rows.keys, entity) }
        }
        if changes.followed.isEmpty && changes.related.isEmpty {
            for rows in changes.changed {
                guard let entity = mapping.entity(rows.layout) else { continue }
                try history.updated(rows.keys, entity, mask(rows, history.places(entity)))
            }
        } else {
            try recordEachOnce(history)
        }
        try history.finish()
    }

    /// Records changed rows where one may have changed for several reasons: it is one change all the same.
    private func recordEachOnce(_ history: HistoryWriter) throws {
        var touched = TouchedRows()
        for rows in [changes.changed, changes.followed, changes.related].joined() {
            guard let entity = mapping.entity(rows.layout) else { continue }
            let mask = mask(rows, history.places(entity))
            for key in rows.keys { touched.touch(key, entity, mask) }
        }
        for rows in changes.inserted {
            guard let entity = mapping.entity(rows.layout) else { continue }
            for key in rows.keys { _ = touched.take(key, entity) }
        }
        for row in touched.rest { try history.updated(CollectionOfOne(row.key), row.entity, row.mask) }
    }

    /// The properties that changed; rows that triggers have changed come without names.
    private func mask(_ rows: BatchRows, _ places: HistoryPlaces) -> HistoryMask {
        rows.properties.isEmpty ? places.derivedMask : places.mask(names: rows.properties)
    }
}
