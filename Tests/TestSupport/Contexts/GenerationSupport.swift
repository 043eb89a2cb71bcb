import CoreData

extension NSManagedObjectContext {
    /// The names of the cities, in order.
    package func storedCityNames() throws -> [String] { try fetch(citiesByName()).map(\.name) }

    /// Runs a block that may throw, which expectations do not show the compiler, inside the scope.
    package func inside<Result>(_ body: () throws -> Result) throws -> Result { try performAndWait(body) }
}

extension Stack {
    /// The ID of the stored city of that name.
    package func cityID(_ name: String) throws -> NSManagedObjectID {
        let context = context("looking up")
        return try context.performAndWait {
            let request = citiesByName()
            request.predicate = NSPredicate(format: "name == %@", name)
            return try context.fetch(request)[0].objectID
        }
    }

    /// Saves a city with two venues; the first has a tag and two photos.
    package func storeCityWithVenues() throws -> (city: NSManagedObjectID, first: NSManagedObjectID) {
        let context = context("setting up")
        return try context.performAndWait {
            let city = City(context: context)
            city.name = "Porto"
            let venues = ["First", "Second"].map { name in
                let venue = Venue(context: context)
                venue.name = name
                venue.city = city
                return venue
            }
            let tag = Tag(context: context)
            tag.title = "old"
            venues[0].tags = [tag]
            venues[0].photos = ["1", "2"].map { title in
                let photo = Photo(context: context)
                photo.title = title
                return photo
            }
            try context.save()
            return (city.objectID, venues[0].objectID)
        }
    }

    /// A context that is pinned to the newest version, and has read it.
    package func pinnedContext(_ name: String = "pinned") throws -> NSManagedObjectContext {
        let context = context(name)
        try context.performAndWait {
            try context.setQueryGenerationFrom(.current)
            _ = try context.count(for: citiesByName())
        }
        return context
    }
}
